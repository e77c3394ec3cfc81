#include "codec/explanation_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "codec/ecs_response.h"
#include "codec/json_members.h"
#include "core/placement/placement_plan.h"

namespace cotenant::codec {
namespace {

Json gpu_need_json(const core::TaskGpuNeed& need) {
  if (need.is_none()) return Json::object({{"kind", "none"}});
  if (need.is_shared()) {
    return Json::object({{"kind", "shared"},
                         {"memoryInMiB", need.shared_memory_mib},
                         {"containers", need.shared_containers}});
  }
  Json json = Json::object({{"kind", "whole"}});
  if (need.whole_all) return json.set("count", "ALL");
  return json.set("count", need.whole_count);
}

Json constraint_json(const core::Query& query, std::string_view from) {
  return Json::object({{"type", "memberOf"}, {"expression", query.text()}, {"from", from}});
}

Json request_json(const core::Explanation& explanation) {
  const core::TaskDefinition& definition = *explanation.definition;
  Json json = Json::object({{"cluster", explanation.cluster},
                            {"family", definition.family},
                            {"registered", explanation.registered}});
  if (explanation.registered) json.set("revision", definition.revision);
  json.set("group", explanation.group)
      .set("count", explanation.count)
      .set("cpu", explanation.need.cpu_units)
      .set("memory", explanation.need.memory_mib)
      .set("gpu", gpu_need_json(explanation.need.gpu));
  Json ports = Json::array();
  for (const core::HostPort& port : explanation.need.ports) {
    ports.push(Json::object({{"port", port.port}, {"protocol", core::to_string(port.protocol)}}));
  }
  Json constraints = Json::array();
  if (explanation.rules.distinct_instance) {
    constraints.push(Json::object({{"type", "distinctInstance"}, {"from", "call"}}));
  }
  for (const core::Query& query : definition.member_of) {
    constraints.push(constraint_json(query, "taskDefinition"));
  }
  for (const core::Query& query : explanation.rules.member_of) {
    constraints.push(constraint_json(query, "call"));
  }
  Json strategies = Json::array();
  for (const core::PlacementStrategy& strategy : explanation.rules.strategies) {
    Json entry = Json::object({{"type", core::to_string(strategy.type)}});
    set_text(entry, "field", strategy.field);
    strategies.push(std::move(entry));
  }
  json.set("hostPorts", std::move(ports))
      .set("placementConstraints", std::move(constraints))
      .set("placementStrategy", std::move(strategies));
  if (!explanation.policy.empty()) {
    json.set("policy", explanation.policy)
        .set("policyFrom", explanation.policy_of_call ? "call" : "cluster")
        .set("requestsLearned", explanation.requests_learned);
  }
  return json;
}

Json gpu_json(const core::ExplainedGpu& gpu) {
  return Json::object({{"gpuId", gpu.uuid},
                       {"index", static_cast<std::int64_t>(gpu.index)},
                       {"model", gpu.model},
                       {"sharingMode", core::to_string(gpu.mode)},
                       {"totalMemoryInMiB", gpu.total_mib},
                       {"remainingMemoryInMiB", gpu.left_mib}});
}

// What a stage of the strategies compares, and in which unit.
Json stage_value_json(const core::PlacementStrategy& strategy, std::int64_t rank,
                      const core::TaskGpuNeed& need) {
  Json json = Json::object(
      {{"name", strategy.field.empty()
                    ? std::string(core::to_string(strategy.type))
                    : fmt::format("{} {}", core::to_string(strategy.type), strategy.field)}});
  if (strategy.type == core::StrategyType::kSpread) {
    return json.set("value", rank).set("unit", "tasks of the group");
  }
  if (strategy.field == "cpu") return json.set("value", rank).set("unit", "CPU units left");
  if (strategy.field == "memory") return json.set("value", rank).set("unit", "MiB left");
  if (need.is_whole()) return json.set("value", rank).set("unit", "idle GPUs");
  if (need.is_none()) return json.set("value", rank).set("unit", "MiB left on all GPUs");
  // Twice the MiB, and one more for an idle GPU (placement_ranking.cpp).
  return json.set("value", rank / 2).set("unit", "MiB left on the GPU");
}

Json place_json(const base::ArnFormat& arns, const core::Explanation& explanation,
                const core::ExplainedPlace& place) {
  Json gpus = Json::array();
  for (const core::ExplainedGpu& gpu : place.gpus) gpus.push(gpu_json(gpu));
  Json json = Json::object(
      {{"containerInstanceArn", arns.container_instance(explanation.cluster, place.instance_id)},
       {"gpus", std::move(gpus)},
       {"remainingCpu", place.free_cpu_units},
       {"remainingMemory", place.free_memory_mib}});
  if (place.cost) json.set("cost", *place.cost).set("costUnit", place.cost_unit);
  Json terms = Json::array();
  for (const core::PolicyTerm& term : place.terms) {
    terms.push(Json::object({{"name", term.name}, {"value", term.value}, {"unit", term.unit}}));
  }
  for (std::size_t i = 0; i < place.stage_ranks.size(); ++i) {
    if (!place.stage_ranks[i]) continue;
    terms.push(stage_value_json(explanation.rules.strategies[i], *place.stage_ranks[i],
                                explanation.need.gpu));
  }
  return json.set("terms", std::move(terms));
}

Json feasibility_json(const base::ArnFormat& arns, const std::string& cluster,
                      const core::Feasibility& found) {
  Json reasons = Json::array();
  for (const core::ReasonCount& count : found.reasons) {
    Json entry = Json::object({{"reason", count.reason}});
    set_text(entry, "constraint", count.constraint);
    reasons.push(entry.set("noFit", count.no_fit).set("infeasible", count.infeasible));
  }
  Json refusing = Json::array();
  for (const core::InstanceVerdict& each : found.refusing) {
    refusing.push(
        Json::object({{"containerInstanceArn", arns.container_instance(cluster, each.instance_id)},
                      {"verdict", core::to_string(each.verdict)},
                      {"reason", each.reason},
                      {"detail", each.obstacle}}));
  }
  return Json::object(
      {{"instances", found.instances},
       {"fits", found.fits},
       {"noFit", found.no_fit},
       {"infeasible", found.infeasible},
       {"draining", found.draining},
       {"reasons", std::move(reasons)},
       {"refusing", std::move(refusing)},
       {"refusingNotListed",
        found.no_fit + found.infeasible - static_cast<std::int64_t>(found.refusing.size())}});
}

Json decision_json(const base::ArnFormat& arns, const core::Explanation& explanation,
                   const core::ExplainedDecision& decision) {
  Json json = Json::object();
  if (decision.refusal) {
    const core::PlacementRefusal& refusal = *decision.refusal;
    const std::string arn = refusal.instance_id.empty()
                                ? std::string()
                                : arns.container_instance(explanation.cluster, refusal.instance_id);
    json.set("outcome", core::to_string(refusal.infeasible ? core::FitVerdict::kInfeasible
                                                           : core::FitVerdict::kNoFit))
        .set("failure", encode_failure(arn, refusal.reason, refusal.detail));
  } else {
    json.set("outcome", "PLACED").set("place", place_json(arns, explanation, *decision.chosen));
    Json others = Json::array();
    for (const core::ExplainedPlace& place : decision.others) {
      others.push(place_json(arns, explanation, place));
    }
    json.set("others", std::move(others));
    if (!decision.scored_all) json.set("scoredAll", false);
  }
  if (!decision.stages.empty()) {
    Json stages = Json::array();
    for (std::size_t i = 0; i < decision.stages.size(); ++i) {
      const core::PlacementStrategy& strategy = explanation.rules.strategies[i];
      Json entry = Json::object({{"type", core::to_string(strategy.type)}});
      set_text(entry, "field", strategy.field);
      stages.push(entry.set("given", static_cast<std::int64_t>(decision.stages[i].before))
                      .set("kept", static_cast<std::int64_t>(decision.stages[i].after)));
    }
    json.set("strategies", std::move(stages));
  }
  if (decision.feasibility) {
    json.set("feasibility", feasibility_json(arns, explanation.cluster, *decision.feasibility));
  }
  return json;
}

Json task_json(const base::ArnFormat& arns, const core::Explanation& explanation,
               const core::ExplainedTask& today) {
  const core::Task& task = today.task;
  Json json = Json::object(
      {{"taskArn", arns.task(explanation.cluster, task.id)},
       {"containerInstanceArn", arns.container_instance(explanation.cluster, task.instance_id)},
       {"lastStatus", core::to_string(task.last_status)},
       {"desiredStatus", core::to_string(task.desired_status)}});
  set_text(json, "stopCode", std::string(core::to_string(task.stop_code)));
  set_text(json, "stoppedReason", task.stopped_reason);
  if (today.place) json.set("place", place_json(arns, explanation, *today.place));
  set_text(json, "misfit", today.misfit);
  return json;
}

}  // namespace

Json encode_explanation(const base::ArnFormat& arns, const core::Explanation& explanation) {
  Json decisions = Json::array();
  for (const core::ExplainedDecision& decision : explanation.decisions) {
    decisions.push(decision_json(arns, explanation, decision));
  }
  Json json = Json::object({{"request", request_json(explanation)}});
  if (explanation.task) json.set("task", task_json(arns, explanation, *explanation.task));
  return json.set("decisions", std::move(decisions));
}

}  // namespace cotenant::codec
