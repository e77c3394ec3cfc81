// The part of the agent's logic that is about the order of a task's containers (start_order.h).
#include <algorithm>
#include <utility>

#include "agent/agent_logic.h"
#include "agent/pause_container.h"
#include "base/limits.h"

namespace cotenant::agent {

using base::TimeMs;
using core::ContainerStatus;
using core::DesiredContainer;
using core::DesiredTask;
using ports::ContainerPhase;
using ports::ContainerState;

StartVerdict AgentLogic::start_verdict(const DesiredTask& task, const DesiredContainer& container,
                                       TimeMs now_ms) const {
  const auto find = [&](const std::string& name) -> DependencyTarget {
    for (const DesiredContainer& part : task.containers) {
      if (part.definition.name != name) continue;
      return {find_state(part.id), unwanted(part, false)};
    }
    return {};
  };
  return judge_start(task, container, find, now_ms);
}

bool AgentLogic::dependencies_met(const DesiredTask& task, const DesiredContainer& container,
                                  TimeMs now_ms) const {
  return start_verdict(task, container, now_ms).met;
}

bool AgentLogic::fail_impossible_starts(const DesiredTask& task, TimeMs now_ms) {
  bool failed = false;
  for (const DesiredContainer& container : task.containers) {
    const ContainerState* state = find_state(container.id);
    const bool before_start = state == nullptr || state->phase == ContainerPhase::kCreated;
    Memory& memory = memory_.at(container.id);
    if (!before_start || memory.ran || container.started || !settled(container.id) ||
        unwanted(container, ending(task))) {
      continue;
    }
    StartVerdict verdict = start_verdict(task, container, now_ms);
    if (verdict.impossible.empty()) continue;
    memory.failure = std::move(verdict.impossible);
    memory.ends_task = true;
    failed = true;
  }
  return failed;
}

void AgentLogic::observe_pause(const DesiredTask& task) {
  if (task.containers.empty() || !is_pause(task.containers.front())) return;
  const DesiredContainer& pause = task.containers.front();
  const ContainerState* state = find_state(pause.id);
  const Memory& held = memory_.at(pause.id);
  // Its failure ends the others at once, also before a snapshot has shown it stopped.
  const std::string& why = held.last.reason.empty() ? held.failure : held.last.reason;
  for (const DesiredContainer& container : task.containers) {
    if (is_pause(container)) continue;
    core::ContainerObservation& seen = memory_.at(container.id).last;
    if (state != nullptr && seen.status == ContainerStatus::kRunning) {
      seen.address = state->address;
    }
    const bool never_ran = seen.status == ContainerStatus::kStopped && !seen.exit_code;
    if (never_ran && seen.reason.empty() && !why.empty()) {
      seen.reason = "ResourceInitializationError: the task's own network or processes: " + why;
      seen.reason.resize(std::min(seen.reason.size(), base::limits::kReasonChars));
    }
  }
}

bool AgentLogic::may_create(const DesiredTask& task, const DesiredContainer& container) const {
  for (const std::string& name : creation_order(container.definition)) {
    for (const DesiredContainer& part : task.containers) {
      if (part.definition.name != name || find_state(part.id) != nullptr) continue;
      // One that never comes is not waited for: the engine says what is missing.
      if (!unwanted(part, false)) return false;
    }
  }
  return true;
}

bool AgentLogic::may_stop(const DesiredTask& task, const DesiredContainer& container) const {
  return std::none_of(task.containers.begin(), task.containers.end(), [&](const auto& part) {
    if (!stops_before(part.definition, container.definition.name)) return false;
    const ContainerState* state = find_state(part.id);
    return starting(part.id) || (state != nullptr && state->phase == ContainerPhase::kRunning);
  });
}

bool AgentLogic::restart_due(const DesiredContainer& container, const ContainerState& state) const {
  const Memory& memory = memory_.at(container.id);
  return memory.last.status != ContainerStatus::kStopped && memory.failure.empty() &&
         restarts(container.definition, state);
}

}  // namespace cotenant::agent
