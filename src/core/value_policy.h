// The frame of the policies that price a node by a value: cost = value after placing less value before.
//
// A value is a function of sums over the node's GPUs, so that trying another GPU costs a subtraction
// and an addition, not a walk. A Model gives:
//   Sums        what is summed; default constructed: nothing
//   View view(node class, milli-CPU left)        the tables that apply
//   void add/drop(Sums&, View, milli left)       one GPU more, or less
//   int64 value(View, Sums)                      of the node
//   int32 cost(before, after, need, Sums before) what is compared
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "core/placement_policy.h"

namespace cotenant::core {

// Rounds towards positive infinity, negatives too: changes within one band count as equal.
inline std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return dividend >= 0 ? (dividend + divisor - 1) / divisor : -((-dividend) / divisor);
}

// Per-mille left on the GPU after the share has been taken.
inline int milli_after_share(const FleetGpu& gpu, const TaskGpuNeed& need) {
  const std::int64_t left_mib = gpu.left_mib - need.shared_memory_mib;
  if (gpu.total_mib == 1000) return static_cast<int>(left_mib);
  return static_cast<int>(left_mib * 1000 / gpu.total_mib);
}

template <class Model>
NodeScore score_by_value(const Model& model, const Fleet& fleet, NodeSlot slot,
                         const TaskNeed& need) {
  const FleetNode& node = fleet.node(slot);
  NodeScore score;
  if (!node.placeable || node.cpu_free < need.cpu_units) return score;
  const bool share = need.gpu.is_shared();
  if (share ? !node.can_share : (need.gpu.is_whole() && fleet.whole_count(slot, need.gpu) == 0)) {
    return score;
  }
  const FleetGpu* gpus = fleet.gpus(slot);
  bool any = !share;
  for (int i = 0; !any && i < node.gpu_count; ++i) any = Fleet::gpu_fits_share(gpus[i], need.gpu);
  if (!any) return score;

  const auto view_before = model.view(node.node_class, fleet.cpu_milli(node.cpu_free));
  const auto view = model.view(node.node_class, fleet.cpu_milli(node.cpu_free - need.cpu_units));
  typename Model::Sums before;
  typename Model::Sums sums;
  for (int i = 0; i < node.gpu_count; ++i) {
    model.add(before, view_before, gpus[i].left_milli);
    model.add(sums, view, gpus[i].left_milli);
  }
  const std::int64_t value_before = model.value(view_before, before);
  if (!share) {
    int wanted = need.gpu.is_whole() ? fleet.whole_count(slot, need.gpu) : 0;
    for (int i = 0; wanted > 0; ++i) {
      if (!gpus[i].takes_whole()) continue;
      model.drop(sums, view, gpus[i].left_milli);
      model.add(sums, view, 0);
      --wanted;
    }
    score.cost = model.cost(value_before, model.value(view, sums), need, before);
    return score;
  }
  for (int i = 0; i < node.gpu_count; ++i) {
    if (!Fleet::gpu_fits_share(gpus[i], need.gpu)) continue;
    // An equal GPU was tried: the lowest index wins.
    bool tried = false;
    for (int j = 0; j < i && !tried; ++j) {
      tried = gpus[j].left_mib == gpus[i].left_mib && gpus[j].total_mib == gpus[i].total_mib &&
              Fleet::gpu_fits_share(gpus[j], need.gpu);
    }
    if (tried) continue;
    typename Model::Sums after = sums;
    model.drop(after, view, gpus[i].left_milli);
    model.add(after, view, milli_after_share(gpus[i], need.gpu));
    const std::int32_t cost = model.cost(value_before, model.value(view, after), need, before);
    if (cost >= score.cost) continue;
    score.cost = cost;
    score.gpu = static_cast<std::uint8_t>(i);
  }
  return score;
}

// The values before and after a given choice, for explanations: calls back with (view, sums) twice.
template <class Model, class Visit>
void visit_choice(const Model& model, const Fleet& fleet, const PlacementChoice& choice,
                  const TaskNeed& need, Visit&& visit) {
  const FleetNode& node = fleet.node(choice.slot);
  const auto view_before = model.view(node.node_class, fleet.cpu_milli(node.cpu_free));
  const auto view = model.view(node.node_class, fleet.cpu_milli(node.cpu_free - need.cpu_units));
  typename Model::Sums before;
  typename Model::Sums after;
  for (std::size_t i = 0; i < node.gpu_count; ++i) {
    const FleetGpu& gpu = fleet.gpu(choice.slot, i);
    model.add(before, view_before, gpu.left_milli);
    const bool taken = choice.gpus.contains(i);
    const int left = !taken                 ? gpu.left_milli
                     : need.gpu.is_shared() ? milli_after_share(gpu, need.gpu)
                                            : 0;
    model.add(after, view, left);
  }
  visit(view_before, before, view, after);
}

}  // namespace cotenant::core
