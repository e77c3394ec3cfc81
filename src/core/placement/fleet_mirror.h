// A container instance as the Fleet sees it.
#pragma once

#include "core/instance.h"
#include "core/placement/fleet_node.h"

namespace cotenant::core {

NodeImage image_of(const Instance& instance);

}  // namespace cotenant::core
