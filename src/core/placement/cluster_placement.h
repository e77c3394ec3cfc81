// What placement keeps of one cluster beside its records: all of it is derived.
#pragma once

#include <string>
#include <vector>

#include "core/placement/fleet.h"
#include "core/placement/policy_engine.h"

namespace cotenant::core {

struct ClusterPlacement {
  Fleet fleet;                            // each instance of the cluster has its node in it
  std::vector<std::string> instance_ids;  // by slot
  mutable PolicyEngine engine;            // caches only: asking it changes no decision
};

}  // namespace cotenant::core
