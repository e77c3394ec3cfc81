#include "core/task_launch.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "core/container_override.h"
#include "core/placement/port_placement.h"

namespace cotenant::core::rules {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

Result<TaskDefinitionPtr> require_definition(const State& state,
                                             const base::TaskDefinitionRef& ref) {
  const TaskDefinitionPtr definition = ref.revision
                                           ? find_definition(state, ref.family, *ref.revision)
                                           : latest_definition(state, ref.family);
  if (definition != nullptr && definition->status != TaskDefinitionStatus::kActive) {
    return fail(ErrorCode::kClient,
                fmt::format("taskDefinition: TaskDefinition is inactive: {}:{} is {}; register it "
                            "again",
                            ref.family, *ref.revision, to_string(definition->status)));
  }
  if (definition != nullptr) return definition;
  const std::string name =
      ref.revision ? fmt::format("{}:{}", ref.family, *ref.revision) : ref.family;
  return fail(
      ErrorCode::kClient,
      fmt::format("taskDefinition: '{}' is not registered{}; RegisterTaskDefinition makes it", name,
                  !ref.revision && state.families.count(ref.family) > 0
                      ? ", or no revision of it is ACTIVE"
                      : ""));
}

// Hands the placement's GPUs to the task's containers: all sharing containers get the one GPU;
// whole GPUs are dealt out in the order of the containers.
std::vector<TaskContainer> make_containers(const TaskDefinition& definition,
                                           const std::vector<ContainerOverride>& overrides,
                                           const Placement& placement, const GpuLedger& ledger,
                                           base::Prng& prng) {
  std::vector<TaskContainer> containers;
  std::size_t dealt = 0;
  for (const ContainerDefinition& part : definition.containers) {
    TaskContainer container;
    container.name = part.name;
    container.id = prng.next_hex_id();
    std::size_t count = 0;
    const GpuRequest& gpu = gpu_request(part, overrides);
    if (std::holds_alternative<SharedGpu>(gpu)) {
      container.gpu_uuids.push_back(ledger.device(placement.gpus.front()).uuid);
    } else if (const auto* whole = std::get_if<WholeGpus>(&gpu)) {
      count = whole->all ? placement.gpus.size() : static_cast<std::size_t>(whole->count);
    }
    for (; count > 0; --count) {
      COTENANT_ASSERT(dealt < placement.gpus.size());
      container.gpu_uuids.push_back(ledger.device(placement.gpus[dealt++]).uuid);
    }
    containers.push_back(std::move(container));
  }
  return containers;
}

Task make_task(const State& state, const RunTask& command, const TaskDefinition& definition,
               const Tags& tags, const Placement& placement, const Context& context) {
  Task task;
  task.id = context.prng.next_hex_id();
  task.cluster = command.cluster;
  task.instance_id = placement.instance_id;
  task.family = definition.family;
  task.revision = definition.revision;
  task.group = group_of(command, definition);
  task.started_by = command.started_by;
  task.overrides = command.overrides;
  task.tags = tags;
  task.created_at_ms = context.now_ms;
  task.containers = make_containers(definition, command.overrides, placement,
                                    state.instances.at(placement.instance_id).gpus, context.prng);
  return task;
}

// The call's own tags win over those of its definition.
Result<Tags> launch_tags(const RunTask& command, const TaskDefinition& definition) {
  auto tags = merged_tags(command.tag_policy.propagate_from_definition ? definition.tags : Tags{},
                          command.tags);
  if (tags && command.tag_policy.managed) tags->emplace(kClusterNameTag, command.cluster);
  return tags;
}

}  // namespace

Result<Launch> prepare_launch(const State& state, const RunTask& command) {
  auto definition = require_definition(state, command.definition);
  if (!definition) return fail(definition.error());
  if (auto status = check_overrides(**definition, command.overrides); !status) {
    return fail(status.error());
  }
  const std::size_t constraints = (*definition)->member_of.size() +
                                  command.placement.member_of.size() +
                                  (command.placement.distinct_instance ? 1 : 0);
  if (constraints > base::limits::kPlacementConstraints) {
    return fail(
        ErrorCode::kInvalidParameter,
        fmt::format("placementConstraints: {} with those of the task definition; at most {}",
                    constraints, base::limits::kPlacementConstraints));
  }
  auto tags = launch_tags(command, **definition);
  if (!tags) return fail(tags.error());
  return Launch{*definition, task_need(**definition, command.overrides), std::move(*tags)};
}

std::string group_of(const RunTask& command, const TaskDefinition& definition) {
  return command.group.empty() ? "family:" + definition.family : command.group;
}

Result<PlacementPlan> plan_launch(const State& state, const RunTask& command,
                                  const Launch& launch) {
  if (!has_active_instance(state, command.cluster)) {
    return fail(
        ErrorCode::kInvalidParameter,
        fmt::format("cluster: No Container Instances were found in your cluster '{}'; start "
                    "an agent that joins it",
                    command.cluster));
  }
  PlacementPlan plan =
      PlacementPlan::make(state, command.cluster, launch.need, launch.definition->member_of,
                          command.placement, group_of(command, *launch.definition));
  if (!launch.need.ports.empty()) {
    demand_ports(active_instances(state, command.cluster), plan.query());
  }
  return plan;
}

void learn_arrival(State& state, const std::string& cluster, const PlacementPlan& plan,
                   Effects& effects) {
  const Fleet& fleet = state.placements.at(cluster).fleet;
  const std::size_t shape = state.workloads[cluster].arrive(fleet, shape_of(fleet, plan.query()));
  effects.changed_records.insert({RecordKind::kWorkload, cluster});
  effects.changed_records.insert(
      {RecordKind::kWorkloadShape, cluster, static_cast<std::int64_t>(shape)});
}

std::string_view policy_of(const State& state, const std::string& cluster,
                           const PlacementPlan& plan) {
  return plan.policy().empty() ? placement_policy(state.clusters.at(cluster))
                               : std::string_view(plan.policy());
}

std::optional<PlacementChoice> choose_place(const State& state, const std::string& cluster,
                                            const PlacementPlan& plan, const PlacementQuery& query,
                                            base::Prng& prng, std::vector<StageTrace>* trace) {
  const ClusterPlacement& placement = state.placements.at(cluster);
  if (!plan.stages().empty()) {
    return choose_by_stages(placement.fleet, query, plan.stages(), prng, trace);
  }
  return placement.engine.choose(placement.fleet, state.workloads.at(cluster),
                                 policy_of(state, cluster, plan), query);
}

Placement accept_choice(State& state, const std::string& cluster, PlacementPlan& plan,
                        const PlacementChoice& choice) {
  state.workloads.at(cluster).placed();
  plan.note_placed(choice.slot);
  return Placement{state.placements.at(cluster).instance_ids[choice.slot], choice.gpus.list()};
}

std::string launch_task(State& state, const RunTask& command, const Launch& launch,
                        const Placement& placement, const Context& context, Effects& effects) {
  Task task = make_task(state, command, *launch.definition, launch.tags, placement, context);
  std::string id = task.id;
  effects.changed_records.insert({RecordKind::kTask, id});
  effects.notify_tasks[task.instance_id].insert(id);
  const auto [at, fresh] = state.tasks.emplace(id, std::move(task));
  COTENANT_ASSERT(fresh);
  reserve(state, at->second);
  return id;
}

}  // namespace cotenant::core::rules
