#include "core/placement/score_rows.h"

#include <algorithm>

#include "core/placement/tight_policy.h"

namespace cotenant::core {
namespace {

constexpr std::size_t kBlock = 64;
// How often a choice may turn out to be stale before the index decides.
constexpr int kRenewals = 16;

std::int32_t least_of(const std::vector<std::int32_t>& costs, std::size_t block) {
  const std::size_t end = std::min(costs.size(), (block + 1) * kBlock);
  std::int32_t least = kNoFitCost;
  for (std::size_t i = block * kBlock; i < end; ++i) least = std::min(least, costs[i]);
  return least;
}

}  // namespace

ScoreRows::Key ScoreRows::key_of(const PlacementQuery& query) {
  const TaskNeed& need = query.need;
  return {need.cpu_units, need.gpu.shared_memory_mib, need.gpu.shared_containers,
          need.gpu.whole_all ? RequestShape::kAllGpus : need.gpu.whole_count, query.models};
}

ScoreRows::Row& ScoreRows::row_for(const Fleet& fleet, const PlacementQuery& query) {
  std::unique_ptr<Row>& row = rows_[key_of(query)];
  if (row == nullptr) row = std::make_unique<Row>();
  row->last_used = ++clock_;
  const std::size_t most =
      std::clamp<std::size_t>(kScoreRowBytes / (6 * (fleet.size() + 1)), 2, kScoreRowsMax);
  Row& wanted = *row;
  if (rows_.size() > most) {
    rows_.erase(std::min_element(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) {
      return a.second->last_used < b.second->last_used;
    }));
  }
  return wanted;
}

void ScoreRows::set_cost(Row& row, NodeSlot slot, std::int32_t cost) {
  const std::int32_t before = row.costs[slot];
  if (before == cost) return;
  row.costs[slot] = cost;
  const std::size_t block = slot / kBlock;
  const std::size_t super = block / kBlock;
  const std::int32_t block_before = row.block_least[block];
  if (cost < block_before) {
    row.block_least[block] = cost;
  } else if (before == block_before) {
    row.block_least[block] = least_of(row.costs, block);
  }
  const std::int32_t block_now = row.block_least[block];
  if (block_now < row.super_least[super]) {
    row.super_least[super] = block_now;
  } else if (block_before == row.super_least[super]) {
    row.super_least[super] = least_of(row.block_least, super);
  }
}

NodeScore ScoreRows::score_of(const Fleet& fleet, const PlacementPolicy& policy,
                              const PlacementQuery& query, NodeSlot slot) {
  DigestTable::Entry& entry = digests_.at(fleet, slot);
  if (!entry.digest.may_fit(query.need) || !query.admits_class(entry.digest.node_class)) return {};
  if (entry.value_epoch != epoch_) {
    entry.digest.value = policy.value(fleet, entry.digest, entry.kinds());
    entry.value_epoch = epoch_;
  }
  return policy.score_node(fleet, slot, entry.digest, entry.kinds(), query.need);
}

void ScoreRows::score(Row& row, const Fleet& fleet, const PlacementPolicy& policy,
                      const PlacementQuery& query, NodeSlot slot) {
  const NodeScore score = score_of(fleet, policy, query, slot);
  row.gpus[slot] = score.gpu;
  set_cost(row, slot, score.cost);
}

// All nodes of one block; the block's least cost is found once, at the end.
void ScoreRows::score_block(Row& row, const Fleet& fleet, const PlacementPolicy& policy,
                            const PlacementQuery& query, std::size_t block) {
  const std::size_t end = std::min(fleet.size(), (block + 1) * kBlock);
  if (row.costs.size() < end) {
    row.costs.resize(end, kNoFitCost);
    row.gpus.resize(end);
    row.block_least.resize(block + 1, kNoFitCost);
    row.super_least.resize(block / kBlock + 1, kNoFitCost);
  } else if (row.fits_known && row.block_least[block] == kNoFitCost) {
    return;
  }
  for (std::size_t i = block * kBlock; i < end; ++i) {
    if (row.fits_known && row.costs[i] == kNoFitCost) continue;
    const NodeScore score = score_of(fleet, policy, query, static_cast<NodeSlot>(i));
    row.costs[i] = score.cost;
    row.gpus[i] = score.gpu;
  }
  row.block_least[block] = least_of(row.costs, block);
  row.super_least[block / kBlock] = least_of(row.block_least, block / kBlock);
}

void ScoreRows::bring_up_to_date(Row& row, const Fleet& fleet, const PlacementPolicy& policy,
                                 const PlacementQuery& query) {
  const std::size_t nodes = fleet.size();
  row.costs.reserve(nodes);
  row.gpus.reserve(nodes);
  const bool missed = row.position < fleet.changes_begin() ||
                      fleet.changes_end() - row.position > std::max(nodes, kBlock);
  const bool grown = row.costs.size() < nodes;  // nodes have joined, or were never reached
  if (missed || grown) row.fits_known = false;
  if (missed || row.epoch != epoch_) {
    row.epoch = epoch_;
    row.sweep_at = 0;
    row.swept = false;
  } else if (row.swept && grown) {
    row.sweep_at = row.costs.size() / kBlock;
    row.swept = false;
  }
  if (missed) row.position = fleet.changes_end();
  std::size_t left = nodes <= kScoresPerDecision ? 2 * kScoresPerDecision : kScoresOfLargeFleet;
  for (; row.position < fleet.changes_end() && left > 0; ++row.position) {
    const NodeSlot slot = fleet.change_at(row.position);
    if (slot >= row.costs.size() || !fleet.is_last_change(row.position)) continue;
    score(row, fleet, policy, query, slot);
    --left;
  }
  if (row.swept) return;
  const std::size_t blocks = (nodes + kBlock - 1) / kBlock;
  for (; row.sweep_at < blocks && left >= kBlock; ++row.sweep_at, left -= kBlock) {
    score_block(row, fleet, policy, query, row.sweep_at);
  }
  row.swept = row.sweep_at >= blocks;
  if (row.swept) row.fits_known = true;
}

std::optional<NodeSlot> ScoreRows::least(const Row& row, const Fleet& fleet,
                                         const PlacementQuery& query) {
  std::int32_t best = kNoFitCost;
  std::optional<NodeSlot> found;
  for (std::size_t super = 0; super < row.super_least.size(); ++super) {
    if (row.super_least[super] >= best) continue;
    const std::size_t block_end = std::min(row.block_least.size(), (super + 1) * kBlock);
    for (std::size_t block = super * kBlock; block < block_end; ++block) {
      if (row.block_least[block] >= best) continue;
      const std::size_t end = std::min(row.costs.size(), (block + 1) * kBlock);
      for (std::size_t i = block * kBlock; i < end; ++i) {
        if (row.costs[i] >= best) continue;
        const auto slot = static_cast<NodeSlot>(i);
        if (!node_admits(fleet, slot, query)) continue;
        best = row.costs[i];
        found = slot;
      }
    }
  }
  return found;
}

PlacementChoice ScoreRows::choice_at(const Fleet& fleet, const PlacementQuery& query, NodeSlot slot,
                                     std::uint8_t gpu) {
  const TaskGpuNeed& need = query.need.gpu;
  if (need.is_none()) return {slot, {}};
  return {slot, need.is_whole() ? fleet.lowest_idle(slot, need) : GpuSet::of(gpu)};
}

std::optional<PlacementChoice> ScoreRows::choose(const Fleet& fleet, const PlacementPolicy& policy,
                                                 const PlacementQuery& query) {
  Row& row = row_for(fleet, query);
  bring_up_to_date(row, fleet, policy, query);
  if (row.swept && row.position == fleet.changes_end()) {
    const auto slot = least(row, fleet, query);
    if (!slot) return std::nullopt;
    return choice_at(fleet, query, *slot, row.gpus[*slot]);
  }
  // Not all scores are there: the index finds a fit wherever there is one, and it competes.
  const auto tight = choose_tight(fleet, query);
  if (!tight) return std::nullopt;
  const NodeScore rival = score_of(fleet, policy, query, tight->slot);
  for (int renewal = 0; renewal < kRenewals; ++renewal) {
    const auto slot = least(row, fleet, query);
    if (!slot || row.costs[*slot] > rival.cost) break;
    const std::int32_t believed = row.costs[*slot];
    score(row, fleet, policy, query, *slot);
    if (row.costs[*slot] == believed) return choice_at(fleet, query, *slot, row.gpus[*slot]);
  }
  if (rival.cost == kNoFitCost) return tight;
  return choice_at(fleet, query, tight->slot, rival.gpu);
}

ScoreRows ScoreRows::fork(const PlacementQuery& query) const {
  ScoreRows forked;
  forked.epoch_ = epoch_;
  const auto found = rows_.find(key_of(query));
  if (found != rows_.end()) {
    forked.rows_.emplace(found->first, std::make_unique<Row>(*found->second));
  }
  return forked;
}

bool ScoreRows::is_complete(const Fleet& fleet, const PlacementQuery& query) const {
  const auto found = rows_.find(key_of(query));
  if (found == rows_.end()) return fleet.size() <= kScoresPerDecision;
  const Row& row = *found->second;
  return row.epoch == epoch_ && row.swept && row.position == fleet.changes_end();
}

void ScoreRows::skip_undone(std::uint64_t from, const Fleet& fleet) {
  for (auto& [key, row] : rows_) {
    if (row->position == from) row->position = fleet.changes_end();
  }
}

std::size_t ScoreRows::bytes() const {
  std::size_t bytes = digests_.bytes();
  for (const auto& [key, row] : rows_) {
    bytes += sizeof(Row) + row->costs.capacity() * 4 + row->gpus.capacity() +
             (row->block_least.capacity() + row->super_least.capacity()) * 4;
  }
  return bytes;
}

}  // namespace cotenant::core
