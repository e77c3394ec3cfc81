// Policy `balanced`, the default: good for filling up and while tasks come and go, learning from what
// arrives. docs/placement.md gives the terms in words and what each is worth.
//   value(node) = 0 if L = 0, else  tight + unusable + cpu - scarcity, where L = GPU per-mille left
//     tight     sum_i (idle ? 0 : 200 l_i / (400 + l_i))
//     unusable  expected waste over all seen GPU shapes, weighted by count, and by size as tasks turn over
//     cpu       half of L times the squared share of CPU that is missing for it
//     scarcity  the price of the node's class, learned from who may use what, per GPU left
//   cost = ceil((value after - value before + (no GPU asked for ? L : 0)) / 20)
// All integers; "/" truncates.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/placement/placement_policy.h"
#include "core/placement/waste_table.h"

namespace cotenant::core {

class BalancedPolicy final : public PlacementPolicy {
 public:
  BalancedPolicy();
  void train(const Fleet& fleet, const TrainingSet& set) override;
  std::unique_ptr<PlacementPolicy> clone() const override {
    return std::make_unique<BalancedPolicy>(*this);
  }
  std::int64_t value(const Fleet& fleet, const NodeDigest& digest,
                     const GpuKind* kinds) const override;
  NodeScore score_node(const Fleet& fleet, NodeSlot slot, const NodeDigest& digest,
                       const GpuKind* kinds, const TaskNeed& need) const override;
  std::vector<PolicyTerm> terms(const Fleet& fleet, const PlacementChoice& choice,
                                const TaskNeed& need) const override;
  std::string_view cost_unit() const override { return "bands of 20 per-mille of a GPU"; }

  // The model of value_policy.h.
  struct Sums {
    std::int64_t left = 0;
    std::int64_t tight = 0;
    std::int64_t served = 0;
    std::int64_t idle = 0;
  };
  struct View {
    WasteTable::Row waste;
    std::int64_t cpu_milli = 0;
    std::int64_t price = 0;
  };
  struct Terms {
    std::int64_t tight = 0;
    std::int64_t unusable = 0;
    std::int64_t cpu = 0;
    std::int64_t scarcity = 0;
  };
  View view(ClassId id, std::int64_t cpu_milli) const {
    return {waste_.row(id, cpu_milli), cpu_milli, id < prices_.size() ? prices_[id] : 0};
  }
  void add(Sums& sums, const View& view, int milli, std::int64_t count = 1) const {
    change(sums, view, milli, count);
  }
  void drop(Sums& sums, const View& view, int milli, std::int64_t count = 1) const {
    change(sums, view, milli, -count);
  }
  Terms terms_of(const View& view, const Sums& sums) const;
  std::int64_t value(const View& view, const Sums& sums) const {
    const Terms terms = terms_of(view, sums);
    return terms.tight + terms.unusable + terms.cpu - terms.scarcity;
  }
  std::int32_t cost(std::int64_t before, std::int64_t after, const TaskNeed& need,
                    const Sums& sums_before) const;

 private:
  void change(Sums& sums, const View& view, int milli, std::int64_t times) const {
    sums.left += times * milli;
    sums.tight += times * tight_[static_cast<std::size_t>(milli)];
    if (milli == 1000) sums.idle += times;
    if (view.waste.group != nullptr) {
      sums.served += times * milli * view.waste.served[view.waste.group[milli]];
    }
  }

  std::array<std::int16_t, 1001> tight_{};
  WasteTable waste_;
  std::vector<std::int64_t> prices_;  // by ClassId, per GPU (1000)
  std::int64_t cpu_per_gpu_ = 10000;
};

}  // namespace cotenant::core
