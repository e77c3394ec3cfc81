// The part of the agent's logic that is about what is seen of containers, and told of it.
#include <algorithm>
#include <utility>

#include "agent/agent_logic.h"
#include "agent/labels.h"
#include "agent/pause_container.h"
#include "base/limits.h"

namespace cotenant::agent {
namespace {

using core::ContainerStatus;
using core::DesiredContainer;
using core::DesiredTask;
using ports::ContainerPhase;
using ports::ContainerState;

constexpr const char* kGone = "CannotInspectContainerError: the container is gone";
constexpr const char* kStartedOnce =
    "CannotStartContainerError: the container was reported before and is not started again";
constexpr const char* kOutOfMemory = "OutOfMemoryError: Container killed due to memory usage";

void set_stopped(core::ContainerObservation& seen, std::optional<int> exit_code,
                 std::string reason) {
  seen.status = ContainerStatus::kStopped;
  seen.exit_code = exit_code;
  seen.reason = std::move(reason);
  seen.reason.resize(std::min(seen.reason.size(), base::limits::kReasonChars));
}

// `failure` is why we did not want it to run, if so.
void see_exit(core::ContainerObservation& seen, const ContainerState& state,
              const std::string& failure) {
  if (state.oom_killed) return set_stopped(seen, state.exit_code, kOutOfMemory);
  if (!failure.empty() || state.exit_code || state.error.empty()) {
    return set_stopped(seen, state.exit_code, failure);
  }
  set_stopped(seen, std::nullopt, "CannotStartContainerError: " + state.error);
}

// With the host's network every port of the container is the host's.
std::vector<core::NetworkBinding> host_bindings(const core::ContainerDefinition& definition) {
  std::vector<core::NetworkBinding> bindings;
  for (const core::PortMapping& mapping : definition.ports) {
    bindings.push_back(
        {"0.0.0.0", mapping.container_port, mapping.container_port, mapping.protocol});
  }
  return bindings;
}

}  // namespace

void AgentLogic::observe_task(const DesiredTask& task) {
  for (const DesiredContainer& container : task.containers) {
    observe_container(container, task.stop, task.stop);
    core::ContainerObservation& seen = memory_.at(container.id).last;
    if (task.network_mode == core::NetworkMode::kHost && seen.status == ContainerStatus::kRunning) {
      seen.bindings = host_bindings(container.definition);
    }
  }
  if (!task.stop && ending(task)) {
    for (const DesiredContainer& container : task.containers) {
      observe_container(container, false, true);
    }
  }
  observe_pause(task);
}

void AgentLogic::observe_container(const DesiredContainer& container, bool stop, bool task_ends) {
  Memory& memory = memory_[container.id];
  core::ContainerObservation& seen = memory.last;
  seen.name = container.definition.name;
  if (seen.status == ContainerStatus::kStopped || !settled(container.id)) return;

  const ContainerState* state = find_state(container.id);
  if (state == nullptr) {
    if (!memory.failure.empty()) {
      set_stopped(seen, std::nullopt, memory.failure);
    } else if (container.started || memory.ran) {
      set_stopped(seen, std::nullopt, stop ? "" : kGone);
    } else if (task_ends) {
      set_stopped(seen, std::nullopt, "");
    }
    return;
  }
  seen.runtime_id = state->id;
  seen.image_digest = state->image_digest;
  switch (state->phase) {
    case ContainerPhase::kCreated:
      if (memory.created_runtime_id != state->id) {
        memory.created_runtime_id = state->id;
        memory.created_seq = ++seq_;
        memory.timeouts = 0;
        memory.conflicts = 0;
        memory.gate = HealthGate();
      }
      if (container.started && !task_ends && memory.failure.empty()) memory.failure = kStartedOnce;
      // A removal is waited for, so that a start which was given up cannot come true after the
      // report; an engine that cannot remove it must not hold the task for ever.
      if (unwanted(container, task_ends) && memory.failed_removals >= kAttempts) {
        set_stopped(seen, std::nullopt, memory.failure);
      }
      return;
    case ContainerPhase::kRunning:
      memory.ran = true;
      seen.status = ContainerStatus::kRunning;
      if (container.definition.life.health_check) seen.health = state->health;
      seen.bindings = state->bindings;
      return;
    case ContainerPhase::kStopped:
      if (task_ends || !restart_due(container, *state)) {
        return see_exit(seen, *state, memory.failure);
      }
      // Its gate has to be passed again: the daemon may be another one by now.
      if (std::exchange(memory.restart_of_ms, state->finished_at_ms) != state->finished_at_ms) {
        memory.created_seq = ++seq_;
        memory.gate = HealthGate();
      }
      return;
  }
}

std::vector<core::TaskObservation> AgentLogic::observations() const {
  std::map<std::string, core::TaskObservation> tasks;
  if (full_desired_) {
    for (const auto& [task_id, task] : desired_) {
      core::TaskObservation& seen = tasks[task_id];
      if (const auto pull = pull_times_.find(task_id); pull != pull_times_.end()) {
        seen.pull_started_at_ms = pull->second.started_at_ms;
        seen.pull_stopped_at_ms = pull->second.stopped_at_ms;
      }
      for (const DesiredContainer& container : task.containers) {
        if (is_pause(container)) continue;
        const auto found = memory_.find(container.id);
        if (found != memory_.end()) {
          seen.containers.push_back(found->second.last);
        } else {
          seen.containers.emplace_back().name = container.definition.name;
        }
      }
    }
  } else {
    for (const ContainerState& state : containers_) {
      const std::string task_id = label_of(state, kTaskLabel);
      core::ContainerObservation container;
      container.name = label_of(state, kContainerNameLabel);
      if (task_id.empty() || container.name.empty() || container.name == kPauseName) continue;
      container.runtime_id = state.id;
      container.image_digest = state.image_digest;
      if (state.phase == ContainerPhase::kRunning) container.status = ContainerStatus::kRunning;
      if (state.phase == ContainerPhase::kStopped) see_exit(container, state, "");
      tasks[task_id].containers.push_back(std::move(container));
    }
  }
  std::vector<core::TaskObservation> observed;
  for (auto& [task_id, task] : tasks) {
    task.task_id = task_id;
    observed.push_back(std::move(task));
  }
  return observed;
}

std::vector<std::string> AgentLogic::running_tasks() const {
  std::set<std::string> task_ids;
  for (const ContainerState& state : containers_) {
    const std::string id = label_of(state, kContainerLabel);
    const std::string task_id = label_of(state, kTaskLabel);
    if (id.empty() || task_id.empty()) continue;  // somebody else's, as in index_engine()
    const auto known = memory_.find(id);
    // A start that has had no answer in time may yet come true while the container is there.
    const bool asked = starting(id) || (state.phase == ContainerPhase::kCreated &&
                                        known != memory_.end() && known->second.ran);
    if (state.phase == ContainerPhase::kRunning || asked) task_ids.insert(task_id);
  }
  return {task_ids.begin(), task_ids.end()};
}

}  // namespace cotenant::agent
