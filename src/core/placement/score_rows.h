// Cached scores: for each kind of need a row with the cost of every node, and the least cost of every
// 64 and every 4096 nodes above it, so that a decision looks at the nodes that have changed and walks
// straight to the least cost.
//
// In a fleet of at most kScoresPerDecision nodes every choice is the best there is. In one that is
// larger no decision scores more than kScoresOfLargeFleet nodes: a row that is new, or that a training
// has made stale, is filled in over its next decisions; until then the choice is the best among the
// scored nodes, its score renewed first, and the tightest fit by the index.
// A pure cache: it may be dropped at any time. Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "core/placement/node_digest.h"
#include "core/placement/placement_policy.h"

namespace cotenant::core {

inline constexpr std::size_t kScoresPerDecision = 16384;
inline constexpr std::size_t kScoresOfLargeFleet = 2048;
// Bytes of all rows; the one that was not asked for longest goes.
inline constexpr std::size_t kScoreRowBytes = std::size_t{64} << 20;
// And at most so many, of which each costs something however small the fleet is.
inline constexpr std::size_t kScoreRowsMax = 4096;

class ScoreRows {
 public:
  // All scores are stale: the policy has been trained.
  void invalidate() { ++epoch_; }
  // The least cost that the query admits.
  std::optional<PlacementChoice> choose(const Fleet& fleet, const PlacementPolicy& policy,
                                        const PlacementQuery& query);
  std::size_t bytes() const;

  // For dry runs. A copy with the row of such needs alone.
  ScoreRows fork(const PlacementQuery& query) const;
  // Whether that row holds the score of every node.
  bool is_complete(const Fleet& fleet, const PlacementQuery& query) const;
  // The fleet's changes from `from` on have been undone: rows that were up to date then, are so now.
  void skip_undone(std::uint64_t from, const Fleet& fleet);

 private:
  // What a score depends on: host memory and constraints are looked at for each choice.
  using Key = std::tuple<std::int64_t, std::int64_t, int, int, std::string>;
  struct Row {
    std::vector<std::int32_t> costs;  // of the nodes that have been reached so far
    std::vector<std::uint8_t> gpus;
    std::vector<std::int32_t> block_least;
    std::vector<std::int32_t> super_least;
    std::uint64_t position = 0;  // in the fleet's changes
    std::size_t sweep_at = 0;    // blocks from here on are still to be scored
    bool swept = false;
    // Where a cost is kNoFitCost, the node does not fit: a training changes nothing about that.
    bool fits_known = false;
    std::uint64_t epoch = 0;
    std::uint64_t last_used = 0;
  };

  static Key key_of(const PlacementQuery& query);
  Row& row_for(const Fleet& fleet, const PlacementQuery& query);
  void bring_up_to_date(Row& row, const Fleet& fleet, const PlacementPolicy& policy,
                        const PlacementQuery& query);
  NodeScore score_of(const Fleet& fleet, const PlacementPolicy& policy, const PlacementQuery& query,
                     NodeSlot slot);
  void score(Row& row, const Fleet& fleet, const PlacementPolicy& policy,
             const PlacementQuery& query, NodeSlot slot);
  void score_block(Row& row, const Fleet& fleet, const PlacementPolicy& policy,
                   const PlacementQuery& query, std::size_t block);
  static void set_cost(Row& row, NodeSlot slot, std::int32_t cost);
  static std::optional<NodeSlot> least(const Row& row, const Fleet& fleet,
                                       const PlacementQuery& query);
  static PlacementChoice choice_at(const Fleet& fleet, const PlacementQuery& query, NodeSlot slot,
                                   std::uint8_t gpu);

  std::map<Key, std::unique_ptr<Row>> rows_;
  DigestTable digests_;
  std::uint64_t epoch_ = 1;
  std::uint64_t clock_ = 0;
};

}  // namespace cotenant::core
