// What a task definition says of ports, storage, limits and names, as the engine's container gets it
// (docs/task-definitions.md). Reads environment files; else pure.
#pragma once

#include "agent/container_spec.h"
#include "base/result.h"

namespace cotenant::agent {

// Adds to `built` what stands in the plan's ports, host, life and task settings. Errors: kClient,
// naming the container and the member.
base::Status add_settings(const ContainerPlan& plan, const std::string& instance_id,
                          bool has_bridge, BuiltSpec& built);

}  // namespace cotenant::agent
