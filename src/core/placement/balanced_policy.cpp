#include "core/placement/balanced_policy.h"

#include <algorithm>

#include "core/placement/cpu_shortage.h"
#include "core/placement/value_policy.h"

namespace cotenant::core {
namespace {

constexpr std::int64_t kBalancedBand = 20;
constexpr std::int64_t kScarcityPrice = 600;
constexpr int kPriceRounds = 32;
constexpr std::int64_t kPriceOne = 65536;

// Each shape spreads its demand over the classes that it may use, inversely to their pressure; a class
// that stays crowded is dear. Classes that all shapes treat alike get the same pressure: without
// constraints every price is 0.
std::vector<std::int64_t> scarcity_prices(const std::vector<TrainingShape>& shapes,
                                          const std::vector<std::int64_t>& class_gpus) {
  const std::size_t classes = class_gpus.size();
  std::vector<std::int64_t> attraction(classes, kPriceOne);
  std::vector<std::int64_t> pressure(classes, 0);
  std::int64_t least = 0;
  for (int round = 0; round < kPriceRounds; ++round) {
    std::fill(pressure.begin(), pressure.end(), 0);
    for (const TrainingShape& shape : shapes) {
      const std::int64_t demand = shape.count * shape.gpu_milli();
      std::int64_t offered = 0;
      for (std::size_t id = 0; id < classes; ++id) {
        if (shape.in_class[id].allowed) offered += class_gpus[id] * attraction[id];
      }
      if (demand == 0 || offered == 0) continue;
      const std::int64_t share = (demand << 24) / offered;
      for (std::size_t id = 0; id < classes; ++id) {
        if (shape.in_class[id].allowed) pressure[id] += share;
      }
    }
    least = 0;
    for (const std::int64_t each : pressure) {
      if (each > 0 && (least == 0 || each < least)) least = each;
    }
    for (std::size_t id = 0; id < classes; ++id) {
      attraction[id] = pressure[id] > 0
                           ? std::max<std::int64_t>(1, least * kPriceOne / pressure[id])
                           : kPriceOne;
    }
  }
  std::vector<std::int64_t> prices(classes, 0);
  for (std::size_t id = 0; id < classes; ++id) {
    if (pressure[id] > 0) {
      prices[id] = kScarcityPrice * (pressure[id] - least) / (pressure[id] + least);
    }
  }
  return prices;
}

}  // namespace

BalancedPolicy::BalancedPolicy() {
  for (int milli = 0; milli < 1000; ++milli) {
    tight_[static_cast<std::size_t>(milli)] =
        static_cast<std::int16_t>(200 * milli / (400 + milli));
  }
}

void BalancedPolicy::train(const Fleet& fleet, const TrainingSet& set) {
  const std::vector<TrainingShape> shapes = training_shapes(fleet, set);
  const std::int64_t per_gpu = cpu_per_gpu(set, shapes);
  if (per_gpu == 0) {
    // Nothing asks for GPUs: as if nothing had been learned, not as before.
    *this = BalancedPolicy();
    return;
  }
  cpu_per_gpu_ = per_gpu;
  // By count while nothing leaves; the more tasks turn over, the more a large request counts, because
  // what it finds blocked it finds blocked again.
  std::vector<std::int64_t> weights;
  weights.reserve(shapes.size());
  for (const TrainingShape& shape : shapes) {
    weights.push_back(shape.count * (1000 + set.turnover * shape.gpu_milli() / 4) / 1000);
  }
  waste_.build(fleet.classes().size(), shapes, weights, false);
  prices_ = scarcity_prices(shapes, trained_class_gpus(fleet, set));
}

BalancedPolicy::Terms BalancedPolicy::terms_of(const View& view, const Sums& sums) const {
  Terms terms;
  if (sums.left == 0) return terms;
  terms.tight = sums.tight;
  if (view.waste.group != nullptr && waste_.weight() > 0) {
    terms.unusable = (waste_.weight() * sums.left - sums.served -
                      1000 * sums.idle * view.waste.whole[sums.idle]) /
                     waste_.weight();
  }
  terms.cpu = cpu_shortage(sums.left, view.cpu_milli, cpu_per_gpu_, 1, 2);
  terms.scarcity = view.price * sums.left / 1000;
  return terms;
}

std::int32_t BalancedPolicy::cost(std::int64_t before, std::int64_t after, const TaskNeed& need,
                                  const Sums& sums_before) const {
  const std::int64_t stranding = need.gpu.is_none() ? sums_before.left : 0;
  return static_cast<std::int32_t>(ceil_div(after - before + stranding, kBalancedBand));
}

std::int64_t BalancedPolicy::value(const Fleet& fleet, const NodeDigest& digest,
                                   const GpuKind* kinds) const {
  return value_of_node(*this, fleet, digest, kinds);
}

NodeScore BalancedPolicy::score_node(const Fleet& fleet, NodeSlot, const NodeDigest& digest,
                                     const GpuKind* kinds, const TaskNeed& need) const {
  return score_by_value(*this, fleet, digest, kinds, need);
}

std::vector<PolicyTerm> BalancedPolicy::terms(const Fleet& fleet, const PlacementChoice& choice,
                                              const TaskNeed& need) const {
  std::vector<PolicyTerm> out;
  visit_choice(
      *this, fleet, choice, need,
      [&](const View& view_before, const Sums& before, const View& view, const Sums& after) {
        const Terms from = terms_of(view_before, before);
        const Terms to = terms_of(view, after);
        out = {{"tight", to.tight - from.tight, kGpuMilliUnit},
               {"unusable", to.unusable - from.unusable, kGpuMilliUnit},
               {"cpu", to.cpu - from.cpu, kGpuMilliUnit},
               {"scarcity", from.scarcity - to.scarcity, kGpuMilliUnit}};
        if (need.gpu.is_none()) out.push_back({"gpu left beside it", before.left, kGpuMilliUnit});
      });
  return out;
}

}  // namespace cotenant::core
