// The frame of the policies that price a node by a value: cost = value after placing less value before.
//
// A value is a function of sums over the node's kinds of GPUs, so that trying another GPU costs a
// subtraction and an addition, not a walk. A Model gives:
//   Sums        what is summed; default constructed: nothing
//   View view(node class, milli-CPU left)        the tables that apply
//   void add/drop(Sums&, View, milli left, count)  GPUs more, or less
//   int64 value(View, Sums)                      of the node
//   int32 cost(before, after, need, Sums before)  what is compared; of these sums only what the CPU
//                                                left does not change
#pragma once

#include <cstdint>

#include "base/assert.h"
#include "core/placement/placement_policy.h"

namespace cotenant::core {

// Rounds towards positive infinity, negatives too: changes within one band count as equal.
inline std::int64_t ceil_div(std::int64_t dividend, std::int64_t divisor) {
  return dividend >= 0 ? (dividend + divisor - 1) / divisor : -((-dividend) / divisor);
}

// Per-mille left after a share has been taken of a GPU with so many MiB left and in all.
inline int milli_after_share(std::int64_t left_mib, std::int64_t total_mib,
                             const TaskGpuNeed& need) {
  left_mib -= need.shared_memory_mib;
  return static_cast<int>(total_mib == 1000 ? left_mib : left_mib * 1000 / total_mib);
}
inline int milli_after_share(const FleetGpu& gpu, const TaskGpuNeed& need) {
  return milli_after_share(gpu.left_mib, gpu.total_mib, need);
}

template <class Model, class View>
typename Model::Sums sums_of(const Model& model, const View& view, const NodeDigest& digest,
                             const GpuKind* kinds) {
  typename Model::Sums sums;
  for (int i = 0; i < digest.kinds; ++i) model.add(sums, view, kinds[i].milli, kinds[i].count);
  return sums;
}

template <class Model>
std::int64_t value_of_node(const Model& model, const Fleet& fleet, const NodeDigest& digest,
                           const GpuKind* kinds) {
  if (digest.cpu_free < 0) return 0;  // it takes no work, nobody asks
  const auto view = model.view(digest.node_class, fleet.cpu_milli(digest.cpu_free));
  return model.value(view, sums_of(model, view, digest, kinds));
}

template <class Model>
NodeScore score_by_value(const Model& model, const Fleet& fleet, const NodeDigest& digest,
                         const GpuKind* kinds, const TaskNeed& need) {
  NodeScore score;
  if (!digest.may_fit(need)) return score;
  const auto view =
      model.view(digest.node_class, fleet.cpu_milli(digest.cpu_free - need.cpu_units));
  const typename Model::Sums sums = sums_of(model, view, digest, kinds);
  if (!need.gpu.is_shared()) {
    typename Model::Sums after = sums;
    if (const int wanted = digest.whole_count(need.gpu); need.gpu.is_whole()) {
      // Whichever of the idle ones they are: each has all its memory left.
      model.drop(after, view, 1000, wanted);
      model.add(after, view, 0, wanted);
    }
    score.cost = model.cost(digest.value, model.value(view, after), need, sums);
    return score;
  }
  for (int i = 0; i < digest.kinds; ++i) {
    const GpuKind& kind = kinds[i];
    if (!kind.fits_share(need.gpu)) continue;
    typename Model::Sums after = sums;
    model.drop(after, view, kind.milli);
    model.add(after, view, milli_after_share(kind.left_mib, kind.total_mib, need.gpu));
    const std::int32_t cost = model.cost(digest.value, model.value(view, after), need, sums);
    if (cost >= score.cost) continue;
    score.cost = cost;
    score.gpu = kind.lowest;
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
