// What a task definition may ask for where there is no container engine and a container is a process
// of the host (EngineInfo::has_isolation is false). Pure.
//
// A member that isolates, or gives less than the host has, is let go with a warning: the program
// means the same without it. One that would change what the program finds (another path, another
// name, another port) is refused.
#pragma once

#include <string>
#include <vector>

#include "agent/action.h"
#include "base/result.h"

namespace cotenant::agent {

// Memory, CPU and the network are for all of them alike: reserved and not limited, the host's. Errors:
// kClient, naming the container, the member and what would be right.
base::Status fit_to_host(const ContainerPlan& plan, std::vector<std::string>& warnings);

}  // namespace cotenant::agent
