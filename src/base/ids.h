// ARNs in ECS's long format. Region and account are fixed per installation.
//   arn:aws:ecs:<region>:<account>:cluster/<name>
//   arn:aws:ecs:<region>:<account>:task/<cluster>/<id>
//   arn:aws:ecs:<region>:<account>:container-instance/<cluster>/<id>
//   arn:aws:ecs:<region>:<account>:container/<cluster>/<task id>/<container id>
//   arn:aws:ecs:<region>:<account>:task-definition/<family>:<revision>
// Source: ECS developer guide, "Amazon Resource Names and IDs".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cotenant::base {

class ArnFormat {
 public:
  ArnFormat(std::string region, std::string account_id);

  std::string cluster(std::string_view name) const;
  std::string task(std::string_view cluster, std::string_view id) const;
  std::string container_instance(std::string_view cluster, std::string_view id) const;
  std::string container(std::string_view cluster, std::string_view task_id,
                        std::string_view container_id) const;
  std::string task_definition(std::string_view family, std::int64_t revision) const;

 private:
  std::string prefix_;
};

// A reference as clients write it: a bare name or id, or a full ARN of that resource type (whatever
// its region and account). For tasks and instances `cluster` is filled when an ARN names it.
struct ResourceRef {
  std::string id;
  std::optional<std::string> cluster;
};

// `type` is "cluster", "task" or "container-instance". Errors: kInvalidParameter.
Result<ResourceRef> parse_resource_ref(std::string_view type, std::string_view text);

struct TaskDefinitionRef {
  std::string family;
  std::optional<std::int64_t> revision;  // none: the latest ACTIVE one
};

// "family", "family:revision" or a task definition's ARN. Errors: kInvalidParameter.
Result<TaskDefinitionRef> parse_task_definition_ref(std::string_view text);

// 1..255 letters, digits, hyphens and underscores: ECS's rule for names.
bool is_ecs_name(std::string_view text);

}  // namespace cotenant::base
