// Policies `tc`, `tcb` and `wv`: a curve of what a GPU with so much left is expected to waste, plus what
// the node's missing CPU strands.
//   value(node) = 0 if L = 0, else  sum_i curve[l_i / 10] + 4 L d^2 / (5 need^2) + block(idle GPUs)
//   cost = ceil((value after - value before) / 15)
//   tc   a fixed concave curve that is 0 at idle: tightest GPU first, idle ones last
//   tcb  tc, and block(): what is lost to tasks that want several GPUs at once
//   wv   a learned curve (wv_curve.h). For filling up only: it takes it that tasks do not leave
// All integers, "/" truncates; docs/placement.md.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/placement/placement_policy.h"

namespace cotenant::core {

class CurvePolicy final : public PlacementPolicy {
 public:
  enum class Kind { kTc, kTcb, kWv };
  explicit CurvePolicy(Kind kind);
  void train(const Fleet& fleet, const TrainingSet& set) override;
  std::unique_ptr<PlacementPolicy> clone() const override {
    return std::make_unique<CurvePolicy>(*this);
  }
  std::int64_t value(const Fleet& fleet, const NodeDigest& digest,
                     const GpuKind* kinds) const override;
  NodeScore score_node(const Fleet& fleet, NodeSlot slot, const NodeDigest& digest,
                       const GpuKind* kinds, const TaskNeed& need) const override;
  std::vector<PolicyTerm> terms(const Fleet& fleet, const PlacementChoice& choice,
                                const TaskNeed& need) const override;
  std::string_view cost_unit() const override { return "bands of 15 per-mille of a GPU"; }

  static constexpr std::size_t kSteps = 101;  // per-mille left / 10
  using Curve = std::array<std::int64_t, kSteps>;

  // The model of value_policy.h.
  struct Sums {
    std::int64_t left = 0;
    std::int64_t curve = 0;
    std::int64_t idle = 0;
  };
  struct View {
    const Curve* curve = nullptr;
    std::int64_t cpu_milli = 0;
  };
  struct Terms {
    std::int64_t curve = 0;
    std::int64_t cpu = 0;
    std::int64_t block = 0;
  };
  View view(ClassId id, std::int64_t cpu_milli) const {
    return {id < curves_.size() ? &curves_[id] : &start_, cpu_milli};
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
    return terms.curve + terms.cpu + terms.block;
  }
  std::int32_t cost(std::int64_t before, std::int64_t after, const TaskNeed& need,
                    const Sums& sums_before) const;

 private:
  void change(Sums& sums, const View& view, int milli, std::int64_t times) const {
    sums.left += times * milli;
    sums.curve += times * (*view.curve)[static_cast<std::size_t>(milli / 10)];
    if (milli == 1000) sums.idle += times;
  }

  Kind kind_;
  Curve start_{};              // before anything was learned, and of classes that came later
  std::vector<Curve> curves_;  // by ClassId
  std::vector<std::int64_t>
      wanting_more_;  // tcb: requests for two or more GPUs and for more than this
  std::int64_t gpu_requests_ = 0;
  std::int64_t cpu_per_gpu_ = 10000;
};

}  // namespace cotenant::core
