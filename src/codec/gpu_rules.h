// The rules about asking for a GPU (ECS API reference, ResourceRequirement, SharingStrategy and
// NvidiaMpsAllocation). Each refusal names the member, the remedy and the documentation it rests
// on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "core/gpu_request.h"
#include "core/task.h"
#include "core/task_definition.h"

namespace cotenant::codec {

// The documentation that a rule about the member at `path` rests on; empty when it is not about
// GPUs.
std::string_view gpu_documentation(std::string_view path);

// Adds that address to the message of an error whose member is about GPUs.
base::Error with_gpu_documentation(base::Error error);

// `resourceRequirements` of one container; `path` leads to it, e.g.
// "containerDefinitions[0].resourceRequirements". Errors: kInvalidParameter, kUnsupportedFeature.
base::Result<core::GpuRequest> decode_gpu_request(const Json& requirements,
                                                  const std::string& path);

// The rules that concern the whole task: no mix of options, sharing not with FARGATE or EXTERNAL
// nor with the host's network, ALL alone. Returns warnings.
base::Result<std::vector<std::string>> check_task_gpu_rules(
    const core::TaskDefinition& definition, const std::vector<std::string>& compatibilities);

// What the platform sets for a sharing container wins over the values of a task's overrides.
std::vector<std::string> override_environment_warnings(
    const core::TaskDefinition& definition, const std::vector<core::ContainerOverride>& overrides);

}  // namespace cotenant::codec
