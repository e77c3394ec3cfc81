// A placement policy ranks the nodes (and GPUs) that a need fits by a cost: the least wins, ties go to
// the first node and in it to the lowest GPU index.
//
// A policy sees numbers only: milli-CPU left, per-mille of each GPU's memory left, the node's class.
// It is pure; what it has learned comes in by train(). Policy `tight` is no such object: the index is
// in its order (tight_policy.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/placement/fleet.h"
#include "core/placement/node_digest.h"
#include "core/placement/placement_query.h"
#include "core/placement/workload.h"

namespace cotenant::core {

inline constexpr std::int32_t kNoFitCost = INT32_MAX;

struct NodeScore {
  std::int32_t cost = kNoFitCost;  // kNoFitCost: the node's CPU or GPUs do not fit
  std::uint8_t gpu = 0;            // for a share
};

// One addend of a node's cost, or a figure that it is made of, for explanations.
struct PolicyTerm {
  std::string_view name;
  std::int64_t value = 0;
  std::string_view unit;
};

// Per-mille of one GPU's memory: 1000 is a whole GPU.
inline constexpr std::string_view kGpuMilliUnit = "per-mille of a GPU";

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;
  virtual std::unique_ptr<PlacementPolicy> clone() const = 0;
  // Builds its tables from the set alone, whatever it was trained from before. Before the first call it
  // decides without having learned anything.
  virtual void train(const Fleet& fleet, const TrainingSet& set) = 0;
  // What the node is worth as it is, for policies that compare by it.
  virtual std::int64_t value(const Fleet&, const NodeDigest&, const GpuKind*) const { return 0; }
  // The node admits the need's class. Host memory and constraints are not looked at here. `digest` is
  // the node's present one, with its value.
  virtual NodeScore score_node(const Fleet& fleet, NodeSlot slot, const NodeDigest& digest,
                               const GpuKind* kinds, const TaskNeed& need) const = 0;
  // The same, everything looked at anew.
  NodeScore score(const Fleet& fleet, NodeSlot slot, const TaskNeed& need) const;
  // What the cost of this choice is made of.
  virtual std::vector<PolicyTerm> terms(const Fleet& fleet, const PlacementChoice& choice,
                                        const TaskNeed& need) const = 0;
  // What NodeScore::cost counts.
  virtual std::string_view cost_unit() const = 0;
};

// "balanced", "tight", "bestfit", "fgd", "tc", "tcb", "wv".
const std::vector<std::string_view>& placement_policy_names();
bool is_placement_policy(std::string_view name);
inline constexpr std::string_view kDefaultPlacementPolicy = "balanced";

// Null for `tight`. The name is one of placement_policy_names().
std::unique_ptr<PlacementPolicy> make_placement_policy(std::string_view name);

}  // namespace cotenant::core
