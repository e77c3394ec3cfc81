// What placement keeps of one cluster.
#pragma once

#include "core/fleet.h"

namespace cotenant::core {

struct ClusterPlacement {
  Fleet fleet;  // derived: each instance of the cluster has its node in it
};

}  // namespace cotenant::core
