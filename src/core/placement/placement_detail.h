// The words of a refusal: how many instances failed which test, and what came nearest.
#pragma once

#include <string>
#include <vector>

#include "core/placement/placement.h"

namespace cotenant::core {

struct FailedInstance {
  const Instance* instance = nullptr;
  FailedTest failed;
};

// ECS's spelling of the reason, or the constraint's own.
std::string reason_of(const FailedTest& failed);

// What is in the way on one instance, in words.
std::string obstacle_text(const FailedInstance& failed, const TaskNeed& need);
// The same of a GPU that does not fit.
std::string gpu_obstacle_text(const GpuLedger& ledger, std::size_t gpu, const TaskGpuNeed& need);

PlacementRefusal explain_refusal(const std::vector<FailedInstance>& failed, const TaskNeed& need,
                                 bool infeasible);

}  // namespace cotenant::core
