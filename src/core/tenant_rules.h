// What a task whose containers share a GPU may not have: it would reach the host, and through it its
// neighbours, the daemons that enforce the limits and the control plane. Pure.
// docs/task-definitions.md, "Beside a shared GPU".
#pragma once

#include <string_view>

#include "base/result.h"
#include "core/task_definition.h"

namespace cotenant::core {

// Errors: kInvalidParameter, naming the member. That networkMode is not host, others check.
base::Status check_tenant(const TaskDefinition& definition);

// Whether a folder of the host, given to a container, opens what a tenant must not reach: the kernel's
// and the engine's own folders, their parents, or cotenant's.
bool is_host_critical(std::string_view path);

}  // namespace cotenant::core
