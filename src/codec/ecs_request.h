// ECS request bodies to core commands and queries.
//
// The body has passed check_input() (api_schema.h): kinds, required members, enums and bounds are
// right. What is left are the rules between members. Errors name the member.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "core/command.h"

namespace cotenant::codec {

// The decoded value and what the caller should know beside it.
template <class T>
struct Decoded {
  T value;
  std::vector<std::string> warnings;
};

base::Result<core::CreateCluster> decode_create_cluster(const Json& body);
base::Result<core::UpdateClusterSettings> decode_update_cluster_settings(const Json& body);
base::Result<Decoded<core::RegisterTaskDefinition>> decode_register_task_definition(
    const Json& body);
base::Result<Decoded<core::RunTask>> decode_run_task(const Json& body);
base::Result<Decoded<core::StartTask>> decode_start_task(const Json& body);
base::Result<core::StopTask> decode_stop_task(const Json& body);

// The `cluster` member: a name or an ARN; `default` where there is none.
base::Result<std::string> decode_cluster(const Json& body);

// A list of names, ids or ARNs of one type. An ARN that names another cluster than `cluster` is
// kept as a reference that will be missing.
base::Result<std::vector<base::ResourceRef>> decode_refs(const Json& body, std::string_view member,
                                                         std::string_view type);

// UpdateContainerInstancesState and DeregisterContainerInstance.
base::Result<core::UpdateInstancesState> decode_update_instances_state(const Json& body);
base::Result<core::DeregisterInstance> decode_deregister_instance(const Json& body);

// `taskDefinition` or an element of `taskDefinitions`, with its revision.
base::Result<base::TaskDefinitionRef> decode_revision(const std::string& text,
                                                      std::string_view member);

// Whether `include` asks for that field.
bool includes(const Json& body, std::string_view field);

// Paging: at most limits::kPageItems; the token is the last key of the page before.
struct Page {
  std::size_t max_results = 0;
  std::string after;  // empty: from the start
};
base::Result<Page> decode_page(const Json& body);
std::string encode_page_token(const std::string& last_key);

struct ListTasksQuery {
  std::string cluster;
  std::optional<std::string> instance_id;
  std::optional<std::string> family;
  std::optional<std::string> service_name;
  std::optional<std::string> started_by;
  core::DesiredStatus desired_status = core::DesiredStatus::kRunning;
  bool none = false;  // a filter that nothing here can match, e.g. launchType FARGATE
  Page page;
};
base::Result<ListTasksQuery> decode_list_tasks(const Json& body);

}  // namespace cotenant::codec
