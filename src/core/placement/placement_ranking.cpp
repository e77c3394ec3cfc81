#include "core/placement/placement_ranking.h"

#include <limits>
#include <utility>

#include "core/placement/tight_policy.h"

namespace cotenant::core {

RankStage RankStage::binpack(PackField field) {
  RankStage stage;
  stage.kind_ = Kind::kBinpack;
  stage.field_ = field;
  return stage;
}

RankStage RankStage::spread(std::function<std::int64_t(NodeSlot)> tasks_of_value) {
  RankStage stage;
  stage.kind_ = Kind::kSpread;
  stage.tasks_of_value_ = std::move(tasks_of_value);
  return stage;
}

RankStage RankStage::random() {
  return {};
}

std::int64_t RankStage::rank(const Fleet& fleet, NodeSlot slot, const TaskNeed& need) const {
  if (kind_ == Kind::kSpread) return tasks_of_value_(slot);
  const FleetNode& node = fleet.node(slot);
  switch (field_) {
    case PackField::kCpu:
      return node.cpu_free;
    case PackField::kMemory:
      return node.memory_free_mib;
    case PackField::kGpuMemory:
      break;
  }
  if (need.gpu.is_none()) return node.usable_mib;
  if (need.gpu.is_whole()) return node.whole_gpus;
  const FleetGpu& gpu = fleet.gpu(slot, tight_gpus(fleet, slot, need.gpu).lowest());
  return 2 * std::int64_t{gpu.left_mib} + (gpu.is_idle() ? 1 : 0);
}

std::optional<std::int64_t> RankStage::rank_of(const Fleet& fleet, NodeSlot slot,
                                               const TaskNeed& need) const {
  if (kind_ == Kind::kRandom) return std::nullopt;
  return rank(fleet, slot, need);
}

void RankStage::keep_best(const Fleet& fleet, const TaskNeed& need, base::Prng& prng,
                          std::vector<NodeSlot>& nodes) const {
  if (nodes.size() < 2) return;
  if (kind_ == Kind::kRandom) {
    nodes = {nodes[prng.next() % nodes.size()]};
    return;
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::size_t kept = 0;
  for (const NodeSlot slot : nodes) {
    const std::int64_t its_rank = rank(fleet, slot, need);
    if (its_rank > least) continue;
    if (its_rank < least) kept = 0;
    least = its_rank;
    nodes[kept++] = slot;
  }
  nodes.resize(kept);
}

std::optional<PlacementChoice> choose_by_stages(const Fleet& fleet, const PlacementQuery& query,
                                                const std::vector<RankStage>& stages,
                                                base::Prng& prng, std::vector<StageTrace>* trace) {
  // By GPU memory alone is the order of the index.
  const bool by_index = stages.size() == 1 && stages[0].packs_gpu_memory();
  if (by_index && !query.wholes_by_memory && trace == nullptr) return choose_tight(fleet, query);
  std::vector<NodeSlot> nodes;
  for (NodeSlot slot = 0; slot < fleet.size(); ++slot) {
    if (node_admits(fleet, slot, query) && fleet.gpus_fit(slot, query.need.gpu)) {
      nodes.push_back(slot);
    }
  }
  for (const RankStage& stage : stages) {
    const std::size_t before = nodes.size();
    stage.keep_best(fleet, query.need, prng, nodes);
    if (trace != nullptr) trace->push_back({before, nodes.size()});
  }
  if (nodes.empty()) return std::nullopt;
  return PlacementChoice{nodes.front(), tight_gpus(fleet, nodes.front(), query.need.gpu)};
}

}  // namespace cotenant::core
