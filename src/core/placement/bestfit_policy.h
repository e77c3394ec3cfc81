// Policy `bestfit`: the node with the least CPU and GPU left in sum after placing, each in parts of a
// large machine (128 cores, 8 GPUs), in percent bands; in it the tightest GPU.
// Source: the baseline BestFit of the openb experiment (FGD, USENIX ATC '23).
#pragma once

#include "core/placement/placement_policy.h"

namespace cotenant::core {

class BestFitPolicy final : public PlacementPolicy {
 public:
  void train(const Fleet&, const TrainingSet&) override {}
  std::unique_ptr<PlacementPolicy> clone() const override {
    return std::make_unique<BestFitPolicy>(*this);
  }
  NodeScore score_node(const Fleet& fleet, NodeSlot slot, const NodeDigest& digest,
                       const GpuKind* kinds, const TaskNeed& need) const override;
  std::vector<PolicyTerm> terms(const Fleet& fleet, const PlacementChoice& choice,
                                const TaskNeed& need) const override;
  std::string_view cost_unit() const override { return "percent used, negated"; }
};

}  // namespace cotenant::core
