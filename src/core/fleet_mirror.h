// A container instance as the Fleet sees it.
#pragma once

#include "core/fleet_node.h"
#include "core/instance.h"

namespace cotenant::core {

NodeImage image_of(const Instance& instance);

}  // namespace cotenant::core
