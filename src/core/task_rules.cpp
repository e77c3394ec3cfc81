// RunTask, StopTask, and what agents report of tasks.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "core/placement/placement.h"
#include "core/reducer_rules.h"
#include "core/task_launch.h"

namespace cotenant::core::rules {
namespace {

using base::ErrorCode;
using base::fail;

TaskFailure as_failure(const PlacementRefusal& refusal) {
  return {refusal.instance_id, refusal.reason, refusal.detail};
}

std::string token_key(const RunTask& command) {
  return command.cluster + "/" + command.client_token;
}

// Asks that the task ends. Called again, it keeps the first reason.
void begin_stop(Task& task, StopCode code, std::string stopped_reason, base::TimeMs now_ms) {
  if (task.desired_status == DesiredStatus::kStopped) return;
  task.desired_status = DesiredStatus::kStopped;
  task.stop_code = code;
  task.stopped_reason = std::move(stopped_reason);
  task.stopping_at_ms = now_ms;
}

// At most kReasonChars bytes, cut between two UTF-8 characters.
std::string shortened_reason(const std::string& reason) {
  if (reason.size() <= base::limits::kReasonChars) return reason;
  std::size_t bytes = base::limits::kReasonChars;
  while (bytes > 0 && (static_cast<unsigned char>(reason[bytes]) & 0xC0U) == 0x80U) --bytes;
  return reason.substr(0, bytes);
}

// Folds one report into the container. Status only moves up its ladder.
bool observe_container(TaskContainer& container, const ContainerObservation& seen) {
  if (container.status == ContainerStatus::kStopped || seen.status < container.status) return false;
  TaskContainer updated = container;
  updated.status = seen.status;
  updated.exit_code = seen.exit_code;
  updated.reason = shortened_reason(seen.reason);
  if (!seen.runtime_id.empty()) updated.runtime_id = seen.runtime_id;
  if (!seen.image_digest.empty()) updated.image_digest = seen.image_digest;
  updated.health = seen.health;
  updated.bindings = seen.bindings;
  updated.address = seen.address;
  const bool changed =
      updated.status != container.status || updated.exit_code != container.exit_code ||
      updated.reason != container.reason || updated.runtime_id != container.runtime_id ||
      updated.image_digest != container.image_digest || updated.health != container.health ||
      updated.bindings != container.bindings || updated.address != container.address;
  container = std::move(updated);
  return changed;
}

// The first pull's begin and the last one's end; an agent that was restarted knows neither.
bool observe_pull(Task& task, const TaskObservation& seen) {
  const base::TimeMs started_ms =
      task.pull_started_at_ms != 0 ? task.pull_started_at_ms : seen.pull_started_at_ms;
  const base::TimeMs stopped_ms = std::max(task.pull_stopped_at_ms, seen.pull_stopped_at_ms);
  const bool changed =
      started_ms != task.pull_started_at_ms || stopped_ms != task.pull_stopped_at_ms;
  task.pull_started_at_ms = started_ms;
  task.pull_stopped_at_ms = stopped_ms;
  return changed;
}

// An essential container that has stopped ends its task.
void end_if_essential_stopped(Task& task, const TaskDefinition& definition, base::TimeMs now_ms) {
  for (const TaskContainer& container : task.containers) {
    const ContainerDefinition* part = find_container(definition, container.name);
    COTENANT_ASSERT(part != nullptr);
    if (container.status != ContainerStatus::kStopped || !part->essential) continue;
    if (container.exit_code || task.started_at_ms != 0) {
      begin_stop(task, StopCode::kEssentialContainerExited, "Essential container in task exited",
                 now_ms);
    } else {
      begin_stop(task, StopCode::kTaskFailedToStart,
                 container.reason.empty() ? "Task failed to start" : container.reason, now_ms);
    }
    return;
  }
}

// The task stands where its least advanced container stands (a stopped one has been through
// RUNNING).
TaskStatus ladder(const Task& task) {
  const auto all = [&](ContainerStatus at_least) {
    return std::all_of(task.containers.begin(), task.containers.end(),
                       [&](const TaskContainer& c) { return c.status >= at_least; });
  };
  if (all(ContainerStatus::kStopped)) return TaskStatus::kStopped;
  if (task.desired_status == DesiredStatus::kStopped) return TaskStatus::kStopping;
  return all(ContainerStatus::kRunning) ? TaskStatus::kRunning : TaskStatus::kPending;
}

// Moves the task to where its containers stand; one whose containers are all gone gives back what
// it held.
void settle(State& state, Task& task, base::TimeMs now_ms) {
  const TaskStatus next = std::max(task.last_status, ladder(task));
  if (next >= TaskStatus::kRunning && task.started_at_ms == 0 &&
      std::any_of(task.containers.begin(), task.containers.end(), [](const TaskContainer& c) {
        return c.status == ContainerStatus::kRunning || c.exit_code.has_value();
      })) {
    task.started_at_ms = now_ms;
  }
  if (next == task.last_status) return;
  if (next == TaskStatus::kStopped) {
    task.execution_stopped_at_ms = now_ms;
    task.stopped_at_ms = now_ms;
    release(state, task);
  }
  task.last_status = next;
}

}  // namespace

Result<Outcome> run_task(State& state, const RunTask& command, const Context& context) {
  if (auto status = require_cluster(state, command.cluster); !status) return fail(status.error());

  Outcome outcome;
  if (!command.client_token.empty()) {
    const auto known = state.client_tokens.find(token_key(command));
    if (known != state.client_tokens.end()) {
      if (known->second.parameters != command.parameters_digest) {
        return fail(ErrorCode::kConflict,
                    fmt::format("clientToken: '{}' was used within 24 hours with other parameters; "
                                "use a new token for a new request",
                                command.client_token));
      }
      outcome.reply = RunTaskReply{known->second.task_ids, known->second.failures};
      return outcome;
    }
    if (state.client_tokens.size() >= base::limits::kClientTokens) {
      return fail(
          ErrorCode::kThrottling,
          fmt::format("clientToken: {} tokens are remembered already; call without a token, "
                      "or later",
                      base::limits::kClientTokens));
    }
  }

  const auto launch = prepare_launch(state, command);
  if (!launch) return fail(launch.error());
  auto plan = plan_launch(state, command, *launch);
  if (!plan) return fail(plan.error());

  COTENANT_ASSERT(command.count >= 1 && command.count <= base::limits::kRunTaskCountMax);
  RunTaskReply reply;
  for (int copy = 0; copy < command.count; ++copy) {
    learn_arrival(state, command.cluster, *plan, outcome.effects);
    const auto choice =
        choose_place(state, command.cluster, *plan, plan->query(), context.prng, nullptr);
    if (!choice) {
      // Nothing changes in between, so the copies that are left fail alike.
      reply.failures.assign(
          static_cast<std::size_t>(command.count - copy),
          as_failure(refuse(state.placements.at(command.cluster).fleet,
                            active_instances(state, command.cluster), plan->query())));
      break;
    }
    const Placement placement = accept_choice(state, command.cluster, *plan, *choice);
    reply.task_ids.push_back(
        launch_task(state, command, *launch, placement, context, outcome.effects));
  }
  // A call that placed nothing may be tried again with the same token.
  if (!command.client_token.empty() && !reply.task_ids.empty()) {
    ClientToken token{token_key(command), command.parameters_digest, context.now_ms, reply.task_ids,
                      reply.failures};
    outcome.effects.changed_records.insert({RecordKind::kClientToken, token.key});
    state.client_tokens.emplace(token.key, std::move(token));
  }
  outcome.reply = std::move(reply);
  return outcome;
}

Result<Outcome> start_task(State& state, const StartTask& command, const Context& context) {
  const RunTask& launch_command = command.launch;
  if (auto status = require_cluster(state, launch_command.cluster); !status) {
    return fail(status.error());
  }
  const auto launch = prepare_launch(state, launch_command);
  if (!launch) return fail(launch.error());
  Outcome outcome;
  RunTaskReply reply;
  for (const std::string& id : command.instance_ids) {
    const auto found = state.instances.find(id);
    if (found == state.instances.end() ||
        found->second.registration.cluster != launch_command.cluster) {
      reply.failures.push_back({id, "MISSING", "there is no such container instance"});
      continue;
    }
    const Instance& instance = found->second;
    if (instance.status != InstanceStatus::kActive) {
      reply.failures.push_back({id, "INACTIVE",
                                fmt::format("the container instance is {}, and takes no new tasks",
                                            to_string(instance.status))});
      continue;
    }
    if (const auto placement = place({&instance}, launch->need)) {
      reply.task_ids.push_back(
          launch_task(state, launch_command, *launch, *placement, context, outcome.effects));
    } else {
      reply.failures.push_back(as_failure(placement.error()));
    }
  }
  outcome.reply = std::move(reply);
  return outcome;
}

void give_up_task(State& state, Task& task, std::string_view why, const Context& context,
                  Effects& effects) {
  begin_stop(task, StopCode::kTerminationNotice, std::string(why), context.now_ms);
  for (TaskContainer& container : task.containers) {
    if (container.status == ContainerStatus::kStopped) continue;
    container.status = ContainerStatus::kStopped;
    container.reason = shortened_reason(std::string(why));
  }
  settle(state, task, context.now_ms);
  ++task.version;
  effects.changed_records.insert({RecordKind::kTask, task.id});
  effects.notify_tasks[task.instance_id].insert(task.id);
}

Result<Outcome> stop_task(State& state, const StopTask& command, const Context& context) {
  if (auto status = require_cluster(state, command.cluster); !status) return fail(status.error());
  const auto found = state.tasks.find(command.task_id);
  if (found == state.tasks.end() || found->second.cluster != command.cluster) {
    return fail(
        ErrorCode::kInvalidParameter,
        fmt::format("task: '{}' was not found in cluster '{}'", command.task_id, command.cluster));
  }
  Task& task = found->second;
  Outcome outcome;
  outcome.reply = TaskReply{task.id};
  if (task.desired_status == DesiredStatus::kStopped || !holds_reservation(task)) return outcome;
  begin_stop(task, StopCode::kUserInitiated,
             command.reason.empty() ? "Task stopped by user" : command.reason, context.now_ms);
  ++task.version;
  outcome.effects.changed_records.insert({RecordKind::kTask, task.id});
  outcome.effects.notify_tasks[task.instance_id].insert(task.id);
  return outcome;
}

Result<Outcome> observe_tasks(State& state, const ObserveTasks& command, const Context& context) {
  Outcome outcome;
  if (command.epoch) {
    const auto instance = state.instances.find(command.instance_id);
    if (instance == state.instances.end() || instance->second.status == InstanceStatus::kInactive ||
        instance->second.connection_epoch != *command.epoch) {
      return fail(
          ErrorCode::kConflict,
          fmt::format("instance {}: the connection of epoch {} is not its present one; what "
                      "it reports is not believed",
                      command.instance_id, *command.epoch));
    }
  }
  for (const TaskObservation& observation : command.tasks) {
    const auto found = state.tasks.find(observation.task_id);
    // Unknown, someone else's, or done: the desired state that the agent gets does not contain it,
    // and it cleans up by that.
    if (found == state.tasks.end() || found->second.instance_id != command.instance_id ||
        !holds_reservation(found->second)) {
      continue;
    }
    Task& task = found->second;
    const DesiredStatus desired_before = task.desired_status;
    const TaskStatus status_before = task.last_status;
    bool changed = false;
    for (const ContainerObservation& seen : observation.containers) {
      if (TaskContainer* container = find_container(task, seen.name)) {
        if (!observe_container(*container, seen)) continue;
        changed = true;
        hold_ports(state, task);
      }
    }
    changed = observe_pull(task, observation) || changed;
    end_if_essential_stopped(task, *definition_of(state, task), context.now_ms);
    settle(state, task, context.now_ms);

    if (!changed && task.last_status == status_before) continue;
    if (task.last_status == TaskStatus::kStopped) {
      state.workloads[task.cluster].departed();
      outcome.effects.changed_records.insert({RecordKind::kWorkload, task.cluster});
    }
    ++task.version;
    outcome.effects.changed_records.insert({RecordKind::kTask, task.id});
    if (task.desired_status != desired_before || task.last_status == TaskStatus::kStopped) {
      outcome.effects.notify_tasks[task.instance_id].insert(task.id);
    }
  }
  return outcome;
}

}  // namespace cotenant::core::rules
