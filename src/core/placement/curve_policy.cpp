#include "core/placement/curve_policy.h"

#include <algorithm>

#include "core/placement/cpu_shortage.h"
#include "core/placement/value_policy.h"
#include "core/placement/wv_curve.h"

namespace cotenant::core {
namespace {

constexpr std::int64_t kCurveBand = 15;
constexpr std::int64_t kBlockLoss = 500;

}  // namespace

CurvePolicy::CurvePolicy(Kind kind) : kind_(kind) {
  for (std::size_t step = 1; step + 1 < kSteps; ++step) {
    const auto left = static_cast<std::int64_t>(step) * 10;
    start_[step] = kind == Kind::kWv ? static_cast<std::int64_t>(step) : 400 * left / (400 + left);
  }
}

void CurvePolicy::train(const Fleet& fleet, const TrainingSet& set) {
  const std::vector<TrainingShape> shapes = training_shapes(fleet, set);
  const std::int64_t per_gpu = cpu_per_gpu(set, shapes);
  if (per_gpu == 0) {
    // Nothing asks for GPUs: as if nothing had been learned, not as before.
    *this = CurvePolicy(kind_);
    return;
  }
  cpu_per_gpu_ = per_gpu;
  if (kind_ == Kind::kTcb) {
    gpu_requests_ = 0;
    wanting_more_.assign(base::limits::kGpusPerInstance + 1, 0);
    for (const TrainingShape& shape : shapes) {
      if (!shape.shape->has_gpu()) continue;
      gpu_requests_ += shape.count;
      if (shape.gpus < 2) continue;
      const auto gpus = std::min(static_cast<std::size_t>(shape.gpus), wanting_more_.size());
      for (std::size_t idle = 0; idle < gpus; ++idle) wanting_more_[idle] += shape.count;
    }
  }
  if (kind_ == Kind::kWv) curves_ = learn_wv_curves(shapes, trained_class_gpus(fleet, set));
}

CurvePolicy::Terms CurvePolicy::terms_of(const View& view, const Sums& sums) const {
  Terms terms;
  if (sums.left == 0) return terms;
  terms.curve = sums.curve;
  terms.cpu = cpu_shortage(sums.left, view.cpu_milli, cpu_per_gpu_, 4, 5);
  if (gpu_requests_ > 0) {
    terms.block =
        sums.idle * kBlockLoss * wanting_more_[static_cast<std::size_t>(sums.idle)] / gpu_requests_;
  }
  return terms;
}

std::int32_t CurvePolicy::cost(std::int64_t before, std::int64_t after, const TaskNeed&,
                               const Sums&) const {
  return static_cast<std::int32_t>(ceil_div(after - before, kCurveBand));
}

std::int64_t CurvePolicy::value(const Fleet& fleet, const NodeDigest& digest,
                                const GpuKind* kinds) const {
  return value_of_node(*this, fleet, digest, kinds);
}

NodeScore CurvePolicy::score_node(const Fleet& fleet, NodeSlot, const NodeDigest& digest,
                                  const GpuKind* kinds, const TaskNeed& need) const {
  return score_by_value(*this, fleet, digest, kinds, need);
}

std::vector<PolicyTerm> CurvePolicy::terms(const Fleet& fleet, const PlacementChoice& choice,
                                           const TaskNeed& need) const {
  std::vector<PolicyTerm> out;
  visit_choice(
      *this, fleet, choice, need,
      [&](const View& view_before, const Sums& before, const View& view, const Sums& after) {
        const Terms from = terms_of(view_before, before);
        const Terms to = terms_of(view, after);
        out = {{"waste", to.curve - from.curve, kGpuMilliUnit},
               {"cpu", to.cpu - from.cpu, kGpuMilliUnit},
               {"block", to.block - from.block, kGpuMilliUnit}};
      });
  return out;
}

}  // namespace cotenant::core
