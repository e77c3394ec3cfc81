// PutAttributes, DeleteAttributes and ListAttributes. The bodies have passed check_input().
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
#include "core/command.h"

namespace cotenant::codec {

// Errors: kInvalidParameter for a target that is no container instance, an ARN of another cluster, or
// a name that belongs to the platform ("ecs.", "com.amazonaws.", "cotenant.").
base::Result<core::PutAttributes> decode_put_attributes(const Json& body);
base::Result<core::DeleteAttributes> decode_delete_attributes(const Json& body);

struct ListAttributesQuery {
  std::string cluster;
  std::string name;                  // empty: any
  std::optional<std::string> value;  // none: any
  Page page;                         // `after`: attribute_key() of the last one
};
base::Result<ListAttributesQuery> decode_list_attributes(const Json& body);

// Orders attributes for paging: by instance, then by name.
std::string attribute_key(const std::string& instance_id, const std::string& name);

// ECS: Attribute with its target.
Json encode_target_attribute(const base::ArnFormat& arns, const std::string& cluster,
                             const core::TargetAttribute& attribute);

}  // namespace cotenant::codec
