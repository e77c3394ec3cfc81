// What would be if these were placed: reservations on a Fleet that are undone at the end of the scope.
// Costs what the reservations cost, whatever the size of the fleet. Nothing else may change the fleet
// in between.
#pragma once

#include <utility>
#include <vector>

#include "core/placement/placement_query.h"

namespace cotenant::core {

class WhatIf {
 public:
  explicit WhatIf(Fleet& fleet) : fleet_(&fleet) {}
  ~WhatIf() {
    while (!taken_.empty()) {
      const auto& [choice, need] = taken_.back();
      fleet_->give_back(choice.slot, choice.gpus, need);
      taken_.pop_back();
    }
  }
  WhatIf(const WhatIf&) = delete;
  WhatIf& operator=(const WhatIf&) = delete;

  void take(const PlacementChoice& choice, const TaskNeed& need) {
    fleet_->take(choice.slot, choice.gpus, need);
    taken_.emplace_back(choice, need);
  }

 private:
  Fleet* fleet_;
  std::vector<std::pair<PlacementChoice, TaskNeed>> taken_;
};

}  // namespace cotenant::core
