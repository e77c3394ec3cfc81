// A variable in the environment of a container's processes, by which those are found whose shim was
// killed and that have left the program's process group. Any thread.
#pragma once

#include <string>

namespace cotenant::adapters {

inline constexpr const char* kProcessTag = "COTENANT_CONTAINER";

// SIGKILL to every process that was started with this value of the variable.
void kill_tagged_processes(const std::string& container_id);

}  // namespace cotenant::adapters
