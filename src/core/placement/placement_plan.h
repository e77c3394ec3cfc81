// ECS's constraints and strategies (placement_rules.h), made ready for the placement of the tasks of
// one call on one cluster.
//
// Looks at the State when it is made and each time it is asked: it must not outlive the State, and
// the State may change only by the placements that note_placed() is told of. Not thread safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/placement/placement_query.h"
#include "core/placement/placement_ranking.h"
#include "core/placement/placement_rules.h"
#include "core/state.h"

namespace cotenant::core {

// Reasons of a refusal, as ECS words them in its service events and stopped reasons.
inline constexpr std::string_view kMemberOfUnsatisfied =
    "MemberOf placement constraint unsatisfied";
inline constexpr std::string_view kDistinctUnsatisfied =
    "DistinctInstance placement constraint unsatisfied";

// What an expression can ask of an instance now. The groups are those of its tasks that are to run; tasks
// are looked at only for an expression that asks about more than attributes.
class InstanceFacts {
 public:
  InstanceFacts(const State& state, const Instance& instance, const Query& asked);
  const QueryFacts& facts() const { return facts_; }

 private:
  std::set<std::string> groups_;
  QueryFacts facts_;
};

class PlacementPlan {
 public:
  // `group` is the task group that the new tasks join: distinctInstance and spread count its tasks that
  // are to run (ECS developer guide: the desired status decides).
  static PlacementPlan make(const State& state, const std::string& cluster, const TaskNeed& need,
                            const std::vector<Query>& definition_member_of,
                            const PlacementRules& rules, const std::string& group);

  PlacementQuery& query() { return query_; }
  const PlacementQuery& query() const { return query_; }
  // Empty: a policy ranks; policy() where the call names one, else the cluster's.
  const std::vector<RankStage>& stages() const { return stages_; }
  const std::string& policy() const { return policy_; }
  void note_placed(NodeSlot slot);

 private:
  struct Cluster;

  PlacementQuery query_;
  std::vector<RankStage> stages_;
  std::string policy_;
  std::shared_ptr<Cluster> cluster_;  // null: nothing asks about instances
};

}  // namespace cotenant::core
