#include "core/placement/policy_engine.h"

#include "base/assert.h"
#include "core/placement/tight_policy.h"

namespace cotenant::core {

PolicyEngine::Chooser& PolicyEngine::find_or_make(std::string_view policy) {
  const auto found = chosen_by_.find(policy);
  if (found != chosen_by_.end()) return found->second;
  Chooser made;
  made.policy = make_placement_policy(policy);
  COTENANT_ASSERT(made.policy != nullptr);
  return chosen_by_.emplace(std::string(policy), std::move(made)).first->second;
}

PolicyEngine::Chooser& PolicyEngine::chooser(const Fleet& fleet, const Workload& workload,
                                             std::string_view policy) {
  Chooser& chooser = find_or_make(policy);
  // Also for classes that have come since: after a restart the tables are built for all that are there.
  const bool is_due =
      chooser.trainings != workload.trainings() ||
      (workload.trainings() != 0 && chooser.classes_version != fleet.classes_version());
  if (!chooser.fixed && is_due) {
    chooser.policy->train(fleet, workload.training_set());
    chooser.trainings = workload.trainings();
    chooser.classes_version = fleet.classes_version();
    chooser.rows.invalidate();
  }
  return chooser;
}

void PolicyEngine::train(const Fleet& fleet, std::string_view policy, const TrainingSet& set) {
  if (policy == "tight") return;
  Chooser& chooser = find_or_make(policy);
  chooser.policy->train(fleet, set);
  chooser.fixed = true;
  chooser.rows.invalidate();
}

std::optional<PlacementChoice> PolicyEngine::choose(const Fleet& fleet, const Workload& workload,
                                                    std::string_view policy,
                                                    const PlacementQuery& query) {
  COTENANT_ASSERT(!(query.need.gpu.is_shared() && query.need.gpu.is_whole()));
  if (policy == "tight") return choose_tight(fleet, query);
  Chooser& by = chooser(fleet, workload, policy);
  return by.rows.choose(fleet, *by.policy, query);
}

std::vector<PolicyTerm> PolicyEngine::terms(const Fleet& fleet, const Workload& workload,
                                            std::string_view policy, const PlacementQuery& query,
                                            const PlacementChoice& choice) {
  if (policy == "tight") return tight_terms(fleet, query, choice);
  return chooser(fleet, workload, policy).policy->terms(fleet, choice, query.need);
}

std::optional<PolicyEngine::Cost> PolicyEngine::cost(const Fleet& fleet, const Workload& workload,
                                                     std::string_view policy,
                                                     const PlacementQuery& query, NodeSlot slot) {
  if (policy == "tight") return std::nullopt;
  const PlacementPolicy& by = *chooser(fleet, workload, policy).policy;
  return Cost{by.score(fleet, slot, query.need).cost, by.cost_unit()};
}

bool PolicyEngine::has_scored_all(const Fleet& fleet, std::string_view policy,
                                  const PlacementQuery& query) const {
  const auto found = chosen_by_.find(policy);
  return found == chosen_by_.end() || found->second.rows.is_complete(fleet, query);
}

PolicyEngine PolicyEngine::fork(std::string_view policy, const PlacementQuery& query) const {
  PolicyEngine forked;
  const auto found = chosen_by_.find(policy);
  if (found == chosen_by_.end()) return forked;
  const Chooser& from = found->second;
  Chooser to{from.policy->clone(), from.rows.fork(query), from.trainings, from.fixed,
             from.classes_version};
  forked.chosen_by_.emplace(std::string(policy), std::move(to));
  return forked;
}

void PolicyEngine::skip_undone(std::uint64_t from, const Fleet& fleet) {
  for (auto& [name, chooser] : chosen_by_) chooser.rows.skip_undone(from, fleet);
}

std::size_t PolicyEngine::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, chooser] : chosen_by_) bytes += chooser.rows.bytes();
  return bytes;
}

}  // namespace cotenant::core
