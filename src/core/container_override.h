// What RunTask's and StartTask's overrides change of a task definition (ECS API reference,
// ContainerOverride). A task keeps its overrides: what it needs is always asked with them.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/task.h"
#include "core/task_definition.h"

namespace cotenant::core {

// Null where the container is not overridden. Of several for one container the last counts.
const ContainerOverride* find_override(const std::vector<ContainerOverride>& overrides,
                                       std::string_view container);

// What the container asks of the GPUs.
const GpuRequest& gpu_request(const ContainerDefinition& container,
                              const std::vector<ContainerOverride>& overrides);

// What a task of this definition, run with these overrides, reserves on an instance.
TaskNeed task_need(const TaskDefinition& definition,
                   const std::vector<ContainerOverride>& overrides);

// The definition with the task's overrides.
ContainerDefinition with_override(ContainerDefinition definition,
                                  const std::vector<ContainerOverride>& overrides);

// The rules between the overrides and the definition: every name is a container of it, none twice;
// memoryReservation stays at or below memory; all containers that ask for a GPU still use the same
// option. Errors: kInvalidParameter, naming the member.
base::Status check_overrides(const TaskDefinition& definition,
                             const std::vector<ContainerOverride>& overrides);

}  // namespace cotenant::core
