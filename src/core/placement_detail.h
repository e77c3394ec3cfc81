// The words of a refusal: how many instances failed which test, and what came nearest.
#pragma once

#include <vector>

#include "core/placement.h"

namespace cotenant::core {

struct FailedInstance {
  const Instance* instance = nullptr;
  FailedTest failed;
};

PlacementRefusal explain_refusal(const std::vector<FailedInstance>& failed, const TaskNeed& need,
                                 bool infeasible);

}  // namespace cotenant::core
