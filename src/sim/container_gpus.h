// The GPUs of a container, as its labels have them.
#pragma once

#include <string>
#include <vector>

#include "ports/container_runtime.h"

namespace cotenant::sim {

std::vector<std::string> gpus_of(const ports::ContainerState& state);  // UUIDs
// By MPS; false: it has them whole, or has none.
bool is_sharing(const ports::ContainerState& state);

}  // namespace cotenant::sim
