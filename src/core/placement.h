// Where a task goes: feasible -> rank -> select, and why not when it goes nowhere.
//
// One pure function for live scheduling, explain and replay. Same input, same answer: ties go to
// the lowest registration number, then the lowest GPU index.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>
#include "core/instance.h"
#include "core/task_definition.h"

namespace cotenant::core {

// The tests an instance must pass, in this order. reason() gives ECS's spelling of the refusal.
enum class PlacementTest { kAgent, kAttribute, kCpu, kMemory, kGpu };
std::string_view reason(PlacementTest test);  // "AGENT", "ATTRIBUTE", "RESOURCE:CPU", ...

struct Placement {
  std::string instance_id;
  // For a shared need the one GPU; for whole GPUs all of them, lowest index first; else empty.
  std::vector<std::size_t> gpus;
};

struct PlacementRefusal {
  // The test at which the instances that came furthest failed.
  PlacementTest test = PlacementTest::kAgent;
  // Infeasible: no instance could run this task even if it were empty. Otherwise NoFit.
  bool infeasible = false;
  // The instance that came nearest; empty when there is none.
  std::string instance_id;
  // How many instances failed which test, and the GPU that came nearest with what is in its way.
  std::string detail;
};

// `instances` are the ACTIVE ones of one cluster, in order of registration.
tl::expected<Placement, PlacementRefusal> place(const std::vector<const Instance*>& instances,
                                                const TaskNeed& need);

}  // namespace cotenant::core
