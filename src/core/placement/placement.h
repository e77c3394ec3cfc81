// Where a task goes: feasible -> rank -> select, and why not when it goes nowhere.
//
// The steps, each small and pure: placement_query.h (feasible), placement_ranking.h and the policies
// (rank and select), refuse() (why not). One engine for live scheduling, dry run, explain and replay.
// Same input, same answer: ties go to the lowest registration number, then the lowest GPU index.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>
#include "core/instance.h"
#include "core/placement/placement_query.h"
#include "core/task_definition.h"

namespace cotenant::core {

struct Placement {
  std::string instance_id;
  // For a shared need the one GPU; for whole GPUs all of them, lowest index first; else empty.
  std::vector<std::size_t> gpus;
};

struct PlacementRefusal {
  // The test at which the instances that came furthest failed.
  PlacementTest test = PlacementTest::kAgent;
  std::string reason;  // ECS's spelling, or a constraint's own
  // Infeasible: no instance could run this task even if it were empty. Otherwise NoFit.
  bool infeasible = false;
  // The instance that came nearest; empty when there is none.
  std::string instance_id;
  // How many instances failed which test, and the GPU that came nearest with what is in its way.
  std::string detail;
};

// Why none of these instances (the ACTIVE ones of the fleet's cluster, in order of registration) takes
// it. The caller has seen that none does.
PlacementRefusal refuse(const Fleet& fleet, const std::vector<const Instance*>& instances,
                        const PlacementQuery& query);

// The same decision over a few instances, by policy `tight`, without a State.
tl::expected<Placement, PlacementRefusal> place(const std::vector<const Instance*>& instances,
                                                const TaskNeed& need);

}  // namespace cotenant::core
