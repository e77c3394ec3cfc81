#include "core/placement/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "core/container_override.h"
#include "core/placement/dry_run.h"
#include "core/placement/placement_detail.h"
#include "core/reducer_rules.h"
#include "core/task_launch.h"

namespace cotenant::core {
namespace {

// One explanation on its way.
class Explainer {
 public:
  Explainer(State& state, const ExplainQuestion& question, const Context& context)
      : state_(state),
        run_(question.run),
        task_id_(question.task_id),
        listed_(question.instances),
        looks_(question.looks),
        prng_(context.prng),
        context_{context.now_ms, prng_},
        dry_run_(state, question.run.cluster) {}

  base::Result<Explanation> explain(const ExplainQuestion& question);

 private:
  base::Result<rules::Launch> launch_of(const ExplainQuestion& question);
  rules::Launch launch_again(const Task& task);
  ExplainedDecision decide(const rules::Launch& launch, PlacementPlan& plan, bool first, bool last);
  std::vector<ExplainedPlace> others(const PlacementPlan& plan, NodeSlot chosen, std::size_t count);
  ExplainedPlace place_at(const PlacementPlan& plan, const PlacementChoice& choice) const;
  ExplainedTask task_today(const Task& task, const PlacementPlan& plan) const;
  base::Status check_looks();
  Feasibility feasibility(const PlacementQuery& query) const;
  ClusterPlacement& placement() const { return state_.placements.at(run_.cluster); }

  State& state_;
  RunTask run_;
  const std::string task_id_;  // empty: no task is asked about
  const std::size_t listed_;
  const std::size_t looks_;
  base::Prng prng_;  // a copy: the caller's stays where it is
  const Context context_;
  DryRun dry_run_;
  std::size_t instances_ = 1;  // ACTIVE ones
  std::optional<ExplainedTask> today_;
  Effects effects_;  // of what is undone: nobody hears of them
};

base::Result<rules::Launch> Explainer::launch_of(const ExplainQuestion& question) {
  if (!question.task_id.empty()) {
    const auto found = state_.tasks.find(question.task_id);
    if (found == state_.tasks.end() || found->second.cluster != run_.cluster) {
      return base::fail(
          base::ErrorCode::kInvalidParameter,
          fmt::format("task: '{}' was not found in cluster '{}'", question.task_id, run_.cluster));
    }
    return launch_again(found->second);
  }
  if (question.definition) {
    dry_run_.touch_family(question.definition->family);
    auto made = rules::register_task_definition(
        state_, RegisterTaskDefinition{*question.definition}, context_);
    if (!made) return base::fail(made.error());
    const auto& reply = std::get<TaskDefinitionReply>(made->reply);
    run_.definition = {reply.family, reply.revision};
  }
  return rules::prepare_launch(state_, run_);
}

// As if the task were not there and were run again.
rules::Launch Explainer::launch_again(const Task& task) {
  run_.definition = {task.family, task.revision};
  run_.group = task.group;
  run_.overrides = task.overrides;
  run_.count = 1;
  if (holds_reservation(task)) {
    dry_run_.touch_instance(task.instance_id);
    release(state_, task);
  }
  const TaskDefinitionPtr definition = definition_of(state_, task);
  return {definition, task_need(*definition, task.overrides), task.tags};
}

Feasibility Explainer::feasibility(const PlacementQuery& query) const {
  Feasibility found;
  const Fleet& fleet = placement().fleet;
  using Reason = std::pair<PlacementTest, const PlacementConstraint*>;
  std::map<Reason, ReasonCount> reasons;
  for (const Instance* instance : active_instances(state_, run_.cluster)) {
    ++found.instances;
    const NodeSlot slot = *instance->fleet_slot;
    const auto failed = failed_test(fleet, slot, query);
    if (!failed) {
      ++found.fits;
      continue;
    }
    const bool could = fits_when_empty(fleet, slot, query);
    ReasonCount& count = reasons[{failed->test, failed->constraint}];
    count.reason = reason_of(*failed);
    if (failed->constraint != nullptr) count.constraint = failed->constraint->text;
    ++(could ? count.no_fit : count.infeasible);
    ++(could ? found.no_fit : found.infeasible);
    if (found.refusing.size() < listed_) {
      found.refusing.push_back({instance->registration.id,
                                could ? FitVerdict::kNoFit : FitVerdict::kInfeasible, count.reason,
                                obstacle_text({instance, *failed}, query.need)});
    }
  }
  for (auto& [reason, count] : reasons) found.reasons.push_back(std::move(count));
  for (const auto& [id, instance] : state_.instances) {
    if (instance.registration.cluster == run_.cluster &&
        instance.status == InstanceStatus::kDraining) {
      ++found.draining;
    }
  }
  return found;
}

ExplainedPlace Explainer::place_at(const PlacementPlan& plan, const PlacementChoice& choice) const {
  const ClusterPlacement& cluster = placement();
  const PlacementQuery& query = plan.query();
  const Instance& instance = state_.instances.at(cluster.instance_ids[choice.slot]);
  ExplainedPlace place;
  place.instance_id = instance.registration.id;
  for (const std::size_t gpu : choice.gpus.list()) {
    const GpuLedger& ledger = instance.gpus;
    place.gpus.push_back({gpu, ledger.device(gpu).uuid, ledger.device(gpu).model, ledger.mode(gpu),
                          ledger.total_mib(gpu), ledger.remaining_mib(gpu)});
  }
  place.free_cpu_units = instance.free_cpu_units();
  place.free_memory_mib = instance.free_memory_mib();
  for (const RankStage& stage : plan.stages()) {
    place.stage_ranks.push_back(stage.rank_of(cluster.fleet, choice.slot, query.need));
  }
  if (!plan.stages().empty()) return place;
  const Workload& workload = state_.workloads.at(run_.cluster);
  const std::string_view policy = rules::policy_of(state_, run_.cluster, plan);
  place.terms = cluster.engine.terms(cluster.fleet, workload, policy, query, choice);
  if (const auto cost = cluster.engine.cost(cluster.fleet, workload, policy, query, choice.slot)) {
    place.cost = cost->value;
    place.cost_unit = cost->unit;
  }
  return place;
}

// The next best, each the choice among what the better ones leave.
std::vector<ExplainedPlace> Explainer::others(const PlacementPlan& plan, NodeSlot chosen,
                                              std::size_t count) {
  std::vector<ExplainedPlace> places;
  std::set<NodeSlot> taken = {chosen};
  PlacementQuery rest = plan.query();
  rest.constraints.push_back(
      {"ranks higher", [&taken](NodeSlot slot) { return taken.count(slot) == 0; }});
  base::Prng dice = prng_;
  while (places.size() < count) {
    const auto choice = rules::choose_place(state_, run_.cluster, plan, rest, dice, nullptr);
    if (!choice) break;
    places.push_back(place_at(plan, *choice));
    taken.insert(choice->slot);
  }
  return places;
}

ExplainedDecision Explainer::decide(const rules::Launch& launch, PlacementPlan& plan, bool first,
                                    bool last) {
  ExplainedDecision decision;
  rules::learn_arrival(state_, run_.cluster, plan, effects_);
  if (first && !task_id_.empty()) today_ = task_today(state_.tasks.at(task_id_), plan);
  const auto choice =
      rules::choose_place(state_, run_.cluster, plan, plan.query(), prng_, &decision.stages);
  if (first || !choice) decision.feasibility = feasibility(plan.query());
  if (!choice) {
    decision.refusal =
        refuse(placement().fleet, active_instances(state_, run_.cluster), plan.query());
    return decision;
  }
  decision.scored_all =
      !plan.stages().empty() ||
      placement().engine.has_scored_all(placement().fleet,
                                        rules::policy_of(state_, run_.cluster, plan), plan.query());
  decision.chosen = place_at(plan, *choice);
  const std::size_t ranked = std::min(listed_, looks_ / instances_);
  decision.others = others(plan, choice->slot, first ? std::max<std::size_t>(ranked, 1) : 1);
  const Placement placed = rules::accept_choice(state_, run_.cluster, plan, *choice);
  if (!last) {
    dry_run_.touch_instance(placed.instance_id);
    dry_run_.forget_task_afterwards(
        rules::launch_task(state_, run_, launch, placed, context_, effects_));
  }
  return decision;
}

ExplainedTask Explainer::task_today(const Task& task, const PlacementPlan& plan) const {
  ExplainedTask today{task, {}, {}};
  if (!holds_reservation(task)) return today;
  const Instance& instance = state_.instances.at(task.instance_id);
  const NodeSlot slot = *instance.fleet_slot;
  const TaskNeed& need = plan.query().need;
  if (instance.status != InstanceStatus::kActive) {
    today.misfit = fmt::format("instance {} is {}", task.instance_id, to_string(instance.status));
    return today;
  }
  if (const auto failed = failed_test(placement().fleet, slot, plan.query())) {
    today.misfit = obstacle_text({&instance, *failed}, need);
    return today;
  }
  PlacementChoice choice{slot, {}};
  for (const TaskContainer& container : task.containers) {
    for (const std::string& uuid : container.gpu_uuids) {
      const auto gpu = instance.gpus.find(uuid);
      COTENANT_ASSERT(gpu.has_value());
      const bool fits = need.gpu.is_whole()
                            ? !instance.gpus.refuses_whole(*gpu)
                            : !instance.gpus.refuses_share(*gpu, need.gpu.shared_memory_mib,
                                                           need.gpu.shared_containers);
      if (!fits) {
        today.misfit =
            fmt::format("GPU {} {}", uuid, gpu_obstacle_text(instance.gpus, *gpu, need.gpu));
        return today;
      }
      choice.gpus.insert(*gpu);
    }
  }
  today.place = place_at(plan, choice);
  // Of a share it is that of the node's best GPU, which need not be the one that the task has.
  if (need.gpu.is_shared()) today.place->cost.reset();
  return today;
}

base::Status Explainer::check_looks() {
  instances_ = std::max<std::size_t>(active_instances(state_, run_.cluster).size(), 1);
  const std::size_t most = std::max<std::size_t>(looks_ / instances_, 1);
  if (static_cast<std::size_t>(run_.count) <= most) return {};
  return base::fail(
      base::ErrorCode::kInvalidParameter,
      fmt::format("count: {} copies on {} instances are too many for one explanation; "
                  "at most {}",
                  run_.count, instances_, most));
}

base::Result<Explanation> Explainer::explain(const ExplainQuestion& question) {
  if (auto status = require_cluster(state_, run_.cluster); !status) {
    return base::fail(status.error());
  }
  auto launch = launch_of(question);
  if (!launch) return base::fail(launch.error());
  if (auto status = check_looks(); !status) return base::fail(status.error());
  auto plan = rules::plan_launch(state_, run_, *launch);
  if (!plan) return base::fail(plan.error());

  Explanation out;
  out.cluster = run_.cluster;
  out.definition = launch->definition;
  out.registered = !question.definition;
  out.group = rules::group_of(run_, *launch->definition);
  out.count = run_.count;
  out.need = launch->need;
  out.rules = run_.placement;
  if (plan->stages().empty()) {
    out.policy = rules::policy_of(state_, run_.cluster, *plan);
    out.policy_of_call = !plan->policy().empty();
    dry_run_.fork_engine(out.policy, plan->query());
  }
  out.requests_learned = state_.workloads[run_.cluster].counters().seen;
  for (int copy = 0; copy < run_.count; ++copy) {
    out.decisions.push_back(decide(*launch, *plan, copy == 0, copy + 1 == run_.count));
    if (out.decisions.back().refusal) break;
  }
  out.task = std::move(today_);
  return out;
}

}  // namespace

std::string_view to_string(FitVerdict verdict) {
  switch (verdict) {
    case FitVerdict::kFits:
      return "FITS";
    case FitVerdict::kNoFit:
      return "NO_FIT";
    case FitVerdict::kInfeasible:
      return "INFEASIBLE";
  }
  return "";
}

base::Result<Explanation> explain(State& state, const ExplainQuestion& question,
                                  const Context& context) {
  COTENANT_ASSERT(question.run.count >= 1 && question.run.count <= kExplainCountMax);
  return Explainer(state, question, context).explain(question);
}

}  // namespace cotenant::core
