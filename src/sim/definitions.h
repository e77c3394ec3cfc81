// The task definitions of the simulated workloads, as a client would register them.
#pragma once

#include <cstddef>
#include <string>

namespace cotenant::sim {

std::size_t definition_count();
// RegisterTaskDefinition's body; its first container's image carries `tag`, so that registrations can
// be told apart. The family is definition_family().
std::string definition_body(std::size_t kind, const std::string& tag);
std::string definition_family(std::size_t kind);

}  // namespace cotenant::sim
