// Policy `fgd`, fragmentation gradient descent: where the expected GPU memory that the usual requests
// cannot use grows least. Usual are the most frequent shapes that make 95 % of the requests. The score
// is cut to whole percent of a sigmoid; that coarseness is part of the policy.
// Source: Weng et al., "Beware of Fragmentation", USENIX ATC '23.
#pragma once

#include "core/placement/placement_policy.h"
#include "core/placement/waste_table.h"

namespace cotenant::core {

class FgdPolicy final : public PlacementPolicy {
 public:
  void train(const Fleet& fleet, const TrainingSet& set) override;
  std::unique_ptr<PlacementPolicy> clone() const override {
    return std::make_unique<FgdPolicy>(*this);
  }
  std::int64_t value(const Fleet& fleet, const NodeDigest& digest,
                     const GpuKind* kinds) const override;
  NodeScore score_node(const Fleet& fleet, NodeSlot slot, const NodeDigest& digest,
                       const GpuKind* kinds, const TaskNeed& need) const override;
  std::vector<PolicyTerm> terms(const Fleet& fleet, const PlacementChoice& choice,
                                const TaskNeed& need) const override;
  std::string_view cost_unit() const override {
    return "percent of a sigmoid of the GPUs gained, negated";
  }

  // The model of value_policy.h.
  struct Sums {
    std::int64_t left = 0;
    std::int64_t served = 0;
    std::int64_t idle = 0;
  };
  using View = WasteTable::Row;
  View view(ClassId id, std::int64_t cpu_milli) const { return waste_.row(id, cpu_milli); }
  void add(Sums& sums, const View& view, int milli, std::int64_t count = 1) const {
    change(sums, view, milli, count);
  }
  void drop(Sums& sums, const View& view, int milli, std::int64_t count = 1) const {
    change(sums, view, milli, -count);
  }
  std::int64_t value(const View& view, const Sums& sums) const {
    if (view.group == nullptr) return 0;
    return waste_.weight() * sums.left - sums.served - 1000 * sums.idle * view.whole[sums.idle];
  }
  std::int32_t cost(std::int64_t before, std::int64_t after, const TaskNeed& need,
                    const Sums& sums_before) const;

 private:
  void change(Sums& sums, const View& view, int milli, std::int64_t times) const {
    sums.left += times * milli;
    if (milli == 1000) sums.idle += times;
    if (view.group != nullptr) sums.served += times * milli * view.served[view.group[milli]];
  }

  WasteTable waste_;
};

}  // namespace cotenant::core
