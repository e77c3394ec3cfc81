// Rank and select by policy: one of these chooses for a cluster, or a replay. It keeps what policies
// cache; everything it decides follows from the fleet, the workload and the query.
//
// Copying gives an engine that has cached nothing yet. Not thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/placement/placement_policy.h"
#include "core/placement/score_rows.h"
#include "core/placement/workload.h"

namespace cotenant::core {

class PolicyEngine {
 public:
  PolicyEngine() = default;
  PolicyEngine(const PolicyEngine&) {}
  PolicyEngine& operator=(const PolicyEngine&) {
    chosen_by_.clear();
    return *this;
  }
  PolicyEngine(PolicyEngine&&) noexcept = default;
  PolicyEngine& operator=(PolicyEngine&&) noexcept = default;

  // The policy's choice with what the workload had learned at its last training; it learns nothing
  // from being asked, so a dry run may ask too. `policy` is one of placement_policy_names().
  std::optional<PlacementChoice> choose(const Fleet& fleet, const Workload& workload,
                                        std::string_view policy, const PlacementQuery& query);
  // What the policy finds of a choice, before it is taken.
  std::vector<PolicyTerm> terms(const Fleet& fleet, const Workload& workload,
                                std::string_view policy, const PlacementQuery& query,
                                const PlacementChoice& choice);
  // The number that the policy compares; nothing for `tight`, which ranks by the index alone. Of a
  // share, the least of the node's GPUs.
  struct Cost {
    std::int64_t value = 0;
    std::string_view unit;
  };
  std::optional<Cost> cost(const Fleet& fleet, const Workload& workload, std::string_view policy,
                           const PlacementQuery& query, NodeSlot slot);
  // False where the policy has not scored all nodes yet (score_rows.h): the choice is the best of those
  // that are scored.
  bool has_scored_all(const Fleet& fleet, std::string_view policy,
                      const PlacementQuery& query) const;

  // For a dry run: an engine of its own that starts from what this one has cached of the policy and of
  // such needs, so that it decides alike and teaches this one nothing.
  PolicyEngine fork(std::string_view policy, const PlacementQuery& query) const;
  // The changes of the fleet from `from` on have been undone: there is nothing to look at.
  void skip_undone(std::uint64_t from, const Fleet& fleet);

  // Trains a policy from elsewhere, whatever the workload says; for replays that know all in advance.
  void train(const Fleet& fleet, std::string_view policy, const TrainingSet& set);

  std::size_t bytes() const;

 private:
  struct Chooser {
    std::unique_ptr<PlacementPolicy> policy;
    ScoreRows rows;
    std::int64_t trainings = 0;         // of the workload that it has seen
    bool fixed = false;                 // trained from elsewhere
    std::uint32_t classes_version = 0;  // of the fleet, that its tables are for
  };
  Chooser& chooser(const Fleet& fleet, const Workload& workload, std::string_view policy);
  Chooser& find_or_make(std::string_view policy);

  std::map<std::string, Chooser, std::less<>> chosen_by_;
};

}  // namespace cotenant::core
