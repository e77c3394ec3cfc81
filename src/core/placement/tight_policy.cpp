#include "core/placement/tight_policy.h"

#include <algorithm>
#include <cstdint>

#include "base/assert.h"

namespace cotenant::core {
namespace {

// No node with the same attributes as this one fulfils the constraints.
bool attributes_refuse(NodeSlot slot, const PlacementQuery& query) {
  return std::any_of(query.constraints.begin(), query.constraints.end(),
                     [&](const PlacementConstraint& constraint) {
                       return constraint.attributes_only && !constraint.admits(slot);
                     });
}

// Walks the keys of each admitted partition upward from `from` and keeps the least one that `fits`, by
// rank_of(key, class): in one class it must grow with the key. Returns the key; UINT64_MAX: none fits.
template <class Fits, class RankOf>
std::uint64_t least_key(const Fleet& fleet, const PlacementQuery& query,
                        OrderedKeys IndexPartition::*keys, std::uint64_t from, Fits&& fits,
                        RankOf&& rank_of) {
  std::uint64_t least = UINT64_MAX;
  std::uint64_t best = UINT64_MAX;
  const Room room = room_of(query.need.cpu_units, query.need.memory_mib);
  for (const IndexPartition& partition : fleet.index().partitions) {
    if (!query.admits_class(partition.node_class)) continue;
    bool asked = query.constraints.empty() || !partition.same_attributes;
    for (auto at = (partition.*keys).at_least(from, room); !at.at_end(); at.advance()) {
      const std::uint64_t rank = rank_of(at.key(), partition.node_class);
      if (rank >= least) break;
      if (!asked && attributes_refuse(index_key::slot_of(at.key()), query)) break;
      asked = true;
      if (!fits(at.key())) continue;
      least = rank;
      best = at.key();
      break;
    }
  }
  return best;
}

std::uint64_t rank_by_key(std::uint64_t key, std::size_t) {
  return key;
}

// The lowest GPU that the key stands for and that the need fits.
std::optional<std::size_t> gpu_of_key(const Fleet& fleet, std::uint64_t key,
                                      const TaskGpuNeed& need) {
  const NodeSlot slot = index_key::slot_of(key);
  const FleetGpu* gpus = fleet.gpus(slot);
  for (std::size_t i = 0; i < fleet.node(slot).gpu_count; ++i) {
    if (gpus[i].left_mib == index_key::share_left_mib(key) &&
        gpus[i].is_idle() == index_key::share_is_idle(key) &&
        Fleet::gpu_fits_share(gpus[i], need)) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<PlacementChoice> choose_share(const Fleet& fleet, const PlacementQuery& query) {
  const TaskGpuNeed& need = query.need.gpu;
  if (need.shared_memory_mib > INT32_MAX) return std::nullopt;  // no GPU is that large
  const std::uint64_t best = least_key(
      fleet, query, &IndexPartition::shares, index_key::share(need.shared_memory_mib, false, 0),
      [&](std::uint64_t key) {
        return node_admits(fleet, index_key::slot_of(key), query) && gpu_of_key(fleet, key, need);
      },
      rank_by_key);
  if (best == UINT64_MAX) return std::nullopt;
  return PlacementChoice{index_key::slot_of(best), GpuSet::of(*gpu_of_key(fleet, best, need))};
}

std::optional<PlacementChoice> choose_node(const Fleet& fleet, const PlacementQuery& query) {
  const TaskGpuNeed& need = query.need.gpu;
  const bool whole = need.is_whole();
  const std::uint64_t best = least_key(
      fleet, query, whole ? &IndexPartition::wholes : &IndexPartition::usable,
      whole ? index_key::node(need.whole_all ? 1 : need.whole_count, 0) : 0,
      [&](std::uint64_t key) {
        const NodeSlot slot = index_key::slot_of(key);
        return node_admits(fleet, slot, query) && (!whole || fleet.whole_count(slot, need) > 0);
      },
      [&](std::uint64_t key, std::size_t id) {
        if (!whole || !query.wholes_by_memory) return key;
        const auto idle = static_cast<std::int64_t>(key >> index_key::kSlotBits);
        return index_key::node(idle * fleet.classes()[id].gpu_mib, index_key::slot_of(key));
      });
  if (best == UINT64_MAX) return std::nullopt;
  const NodeSlot slot = index_key::slot_of(best);
  return PlacementChoice{slot, whole ? fleet.lowest_idle(slot, need) : GpuSet{}};
}

}  // namespace

std::optional<PlacementChoice> choose_tight(const Fleet& fleet, const PlacementQuery& query) {
  // Registration lets no need through that mixes; placement must not guess when one comes.
  COTENANT_ASSERT(!(query.need.gpu.is_shared() && query.need.gpu.is_whole()));
  return query.need.gpu.is_shared() ? choose_share(fleet, query) : choose_node(fleet, query);
}

GpuSet tight_gpus(const Fleet& fleet, NodeSlot slot, const TaskGpuNeed& need) {
  if (need.is_none()) return {};
  if (need.is_whole()) return fleet.lowest_idle(slot, need);
  std::optional<std::size_t> best;
  const auto before = [](const FleetGpu& a, const FleetGpu& b) {
    return a.left_mib != b.left_mib ? a.left_mib < b.left_mib : !a.is_idle() && b.is_idle();
  };
  for (std::size_t i = 0; i < fleet.node(slot).gpu_count; ++i) {
    const FleetGpu& gpu = fleet.gpu(slot, i);
    if (!Fleet::gpu_fits_share(gpu, need)) continue;
    if (!best || before(gpu, fleet.gpu(slot, *best))) best = i;
  }
  COTENANT_ASSERT(best.has_value());
  return GpuSet::of(*best);
}

std::vector<PolicyTerm> tight_terms(const Fleet& fleet, const PlacementQuery& query,
                                    const PlacementChoice& choice) {
  const FleetNode& node = fleet.node(choice.slot);
  if (query.need.gpu.is_none()) return {{"GPU memory left on the node", node.usable_mib, "MiB"}};
  if (query.need.gpu.is_whole()) return {{"idle GPUs", node.whole_gpus, "GPUs"}};
  const FleetGpu& gpu = fleet.gpu(choice.slot, choice.gpus.lowest());
  return {{"memory left on the GPU", gpu.left_mib, "MiB"},
          {"idle", gpu.is_idle() ? 1 : 0, "1: an idle GPU comes after a shared one"}};
}

}  // namespace cotenant::core
