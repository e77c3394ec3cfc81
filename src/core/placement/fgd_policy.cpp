#include "core/placement/fgd_policy.h"

#include <algorithm>
#include <cmath>

#include "core/placement/value_policy.h"

namespace cotenant::core {

void FgdPolicy::train(const Fleet& fleet, const TrainingSet& set) {
  const std::vector<TrainingShape> shapes = training_shapes(fleet, set);
  std::int64_t requests = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    requests += shapes[i].count;
    order.push_back(i);
  }
  // The most frequent first, then the larger.
  const auto size_of = [&](std::size_t i) {
    const RequestShape& shape = *shapes[i].shape;
    return std::tuple<std::int64_t, int, int, const std::string&>(shape.cpu_milli, shapes[i].milli,
                                                                  shapes[i].gpus, shape.models);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return shapes[a].count != shapes[b].count ? shapes[a].count > shapes[b].count
                                              : size_of(b) < size_of(a);
  });
  std::vector<std::int64_t> weights(shapes.size(), 0);
  std::int64_t covered = 0;
  for (const std::size_t i : order) {
    if (covered * 100 >= requests * 95) break;
    weights[i] = shapes[i].count;
    covered += shapes[i].count;
  }
  waste_.build(fleet.classes().size(), shapes, weights, true);
}

std::int32_t FgdPolicy::cost(std::int64_t before, std::int64_t after, const TaskNeed&,
                             const Sums&) const {
  if (waste_.weight() == 0) return -50;
  const double gained =
      static_cast<double>(before - after) / static_cast<double>(waste_.weight()) / 1000.0;
  return -static_cast<std::int32_t>(100.0 / (1.0 + std::exp(-gained)));
}

std::int64_t FgdPolicy::value(const Fleet& fleet, const NodeDigest& digest,
                              const GpuKind* kinds) const {
  return value_of_node(*this, fleet, digest, kinds);
}

NodeScore FgdPolicy::score_node(const Fleet& fleet, NodeSlot, const NodeDigest& digest,
                                const GpuKind* kinds, const TaskNeed& need) const {
  return score_by_value(*this, fleet, digest, kinds, need);
}

std::vector<PolicyTerm> FgdPolicy::terms(const Fleet& fleet, const PlacementChoice& choice,
                                         const TaskNeed& need) const {
  std::vector<PolicyTerm> out;
  visit_choice(
      *this, fleet, choice, need,
      [&](const View& view_before, const Sums& before, const View& view, const Sums& after) {
        const std::int64_t weight = std::max<std::int64_t>(waste_.weight(), 1);
        out = {{"unusable before", value(view_before, before) / weight, kGpuMilliUnit},
               {"unusable after", value(view, after) / weight, kGpuMilliUnit}};
      });
  return out;
}

}  // namespace cotenant::core
