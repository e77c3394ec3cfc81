// The order in which the containers of a task start and stop, and whether one starts again. Pure
// functions of what the engine shows, so that an agent which has just started decides as the one
// before it did.
//
// Source: ECS API reference, ContainerDependency (conditions; reversed at the stop), startTimeout,
// ContainerRestartPolicy; a dependency that can never come true ends the task (ECS agent,
// dependencygraph).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/desired.h"
#include "ports/container_runtime.h"

namespace cotenant::agent {

// What is known of a container that others depend on.
struct DependencyTarget {
  const ports::ContainerState* state = nullptr;  // none: not created
  bool over = false;                             // it does not run, and will not run again
};
using FindTarget = std::function<DependencyTarget(const std::string& container_name)>;

struct StartVerdict {
  bool met = true;
  std::string impossible;  // why it can never be met; empty: it can
};

// Whether everything that `container` depends on, links included, permits its start.
StartVerdict judge_start(const core::DesiredTask& task, const core::DesiredContainer& container,
                         const FindTarget& find, base::TimeMs now_ms);

// The containers that must exist before this one can be created: the pause container, what it links to,
// and whose volumes it takes.
std::vector<std::string> creation_order(const core::ContainerDefinition& definition);

// Whether `dependent` has to be gone before `target` is stopped.
bool stops_before(const core::ContainerDefinition& dependent, const std::string& target);

// Whether the restart policy starts the stopped container again: it ended by itself, with a code that
// is not ignored, after having run for the attempt period. Two ends within the period are final.
bool restarts(const core::ContainerDefinition& definition, const ports::ContainerState& state);

}  // namespace cotenant::agent
