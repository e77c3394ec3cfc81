// Pieces of JSON that records, agent messages and ECS responses have in common.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "core/task.h"

namespace cotenant::codec {

Json encode_strings(const std::vector<std::string>& strings);
// Elements that are no strings are passed over.
std::vector<std::string> decode_strings(const Json::Array& array);

// [{"name": ..., "value": ...}], as ECS writes environments.
Json encode_environment(const std::vector<core::EnvironmentVariable>& environment);
std::vector<core::EnvironmentVariable> decode_environment(const Json::Array& array);

// ECS: resourceRequirements; nothing for no GPU.
Json encode_gpu_request(const core::GpuRequest& request);
// ECS: tags, [{"key": ..., "value": ...}].
Json encode_tags(const core::Tags& tags);

// ECS: containerOverrides.
Json encode_overrides(const std::vector<core::ContainerOverride>& overrides);
base::Result<std::vector<core::ContainerOverride>> decode_overrides(const Json::Array& array);

}  // namespace cotenant::codec
