// UpdateContainerInstancesState and DeregisterContainerInstance (ECS API reference).
#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/reducer_rules.h"

namespace cotenant::core::rules {
namespace {

// A command stays below what one commit takes (server: kRecordsPerCommand).
constexpr std::size_t kTasksGivenUpPerCommand = 12;

}  // namespace

Result<Outcome> update_instances_state(State& state, const UpdateInstancesState& command) {
  if (auto status = require_cluster(state, command.cluster); !status) {
    return base::fail(status.error());
  }
  Outcome outcome;
  ItemsReply reply;
  for (std::size_t item = 0; item < command.instance_ids.size(); ++item) {
    const std::string& id = command.instance_ids[item];
    const auto found = state.instances.find(id);
    if (found == state.instances.end() || found->second.registration.cluster != command.cluster) {
      reply.failures.push_back({item, "MISSING", "there is no such container instance"});
      continue;
    }
    Instance& instance = found->second;
    if (instance.status == InstanceStatus::kInactive) {
      reply.failures.push_back(
          {item, "INACTIVE", "the container instance was deregistered; its agent may join again"});
      continue;
    }
    if (instance.status == command.status) continue;
    instance.status = command.status;
    instance_changed(state, instance);
    ++instance.version;
    outcome.effects.changed_records.insert({RecordKind::kInstance, id});
  }
  outcome.reply = std::move(reply);
  return outcome;
}

bool give_up_tasks(State& state, Instance& instance, std::size_t max, const Context& context,
                   Effects& effects) {
  std::vector<std::string> ids;
  for (const std::string& id : instance.task_ids) {
    if (ids.size() == max) break;
    ids.push_back(id);
  }
  const std::string why =
      fmt::format("Container instance {} was deregistered with force", instance.registration.id);
  for (const std::string& id : ids) {
    give_up_task(state, state.tasks.at(id), why, context, effects);
  }
  return !instance.task_ids.empty();
}

Result<Outcome> deregister_instance(State& state, const DeregisterInstance& command,
                                    const Context& context) {
  if (auto status = require_cluster(state, command.cluster); !status) {
    return base::fail(status.error());
  }
  const auto found = state.instances.find(command.instance_id);
  if (found == state.instances.end() || found->second.registration.cluster != command.cluster) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("containerInstance: The specified container instance was not found: '{}' in "
                    "cluster '{}'",
                    command.instance_id, command.cluster));
  }
  Instance& instance = found->second;
  if (!instance.task_ids.empty() && !command.force) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format(
            "containerInstance: Found running tasks on the instance: {} task(s) of '{}' hold "
            "their reservation; stop them, or give force if the machine is lost",
            instance.task_ids.size(), command.instance_id));
  }
  Outcome outcome;
  if (instance.status != InstanceStatus::kInactive) {
    instance.status = InstanceStatus::kInactive;
    instance.agent_connected = false;
    instance_changed(state, instance);
    instance.deregistered_at_ms = context.now_ms;
    ++instance.version;
    outcome.effects.changed_records.insert({RecordKind::kInstance, command.instance_id});
    outcome.effects.dismissed_instances.insert(command.instance_id);
  }
  const bool more =
      give_up_tasks(state, instance, kTasksGivenUpPerCommand, context, outcome.effects);
  outcome.reply = BoundedReply{more};
  return outcome;
}

}  // namespace cotenant::core::rules
