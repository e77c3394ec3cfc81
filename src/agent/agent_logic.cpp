#include "agent/agent_logic.h"

#include <algorithm>
#include <utility>

#include "agent/container_spec.h"
#include "agent/labels.h"
#include "agent/pause_container.h"
#include "base/limits.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using base::Status;
using base::TimeMs;
using core::ContainerStatus;
using core::DesiredContainer;
using core::DesiredTask;
using ports::ContainerPhase;
using ports::ContainerState;

// When an action counts as lost: above the ports' own time limits, so that in practice they answer.
struct DeadlineOf {
  TimeMs operator()(const StartDaemon&) const { return 120'000; }
  TimeMs operator()(const ProbeDaemon&) const { return 30'000; }
  TimeMs operator()(const StopDaemon&) const { return 120'000; }
  TimeMs operator()(const PullImage&) const { return 7'500'000; }
  TimeMs operator()(const CreateContainer&) const { return 300'000; }
  TimeMs operator()(const StartContainer&) const { return 240'000; }
  TimeMs operator()(const StopContainer& a) const { return a.timeout_s * 1000 + 90'000; }
  TimeMs operator()(const RemoveContainer&) const { return 360'000; }
};

// The most that an action may wait for a thread; the ports' time limits begin after that.
constexpr TimeMs kQueueMs = 60'000;

// The engine is away or broken: nothing is known about the container.
bool engine_trouble(ErrorCode code) {
  return code == ErrorCode::kUnavailable || code == ErrorCode::kIo || code == ErrorCode::kProtocol;
}

// Which of two containers with one id is the real one.
int rank(const ContainerState& state) {
  switch (state.phase) {
    case ContainerPhase::kRunning:
      return 2;
    case ContainerPhase::kStopped:
      return 1;
    case ContainerPhase::kCreated:
      return 0;
  }
  return 0;
}

}  // namespace

void AgentLogic::desire_all(std::vector<DesiredTask> tasks) {
  desired_.clear();
  full_desired_ = true;
  desire_changes(std::move(tasks), {});
}

void AgentLogic::desire_changes(std::vector<DesiredTask> tasks,
                                const std::vector<std::string>& removed) {
  for (const std::string& task_id : removed) desired_.erase(task_id);
  for (DesiredTask& task : tasks) {
    add_pause_container(task);
    const std::string task_id = task.task_id;
    desired_.insert_or_assign(task_id, std::move(task));
  }
}

void AgentLogic::observe(std::uint64_t token, Snapshot snapshot) {
  if (token <= daemons_seq_) return;
  daemons_seq_ = token;
  for (auto& [uuid, gpu] : gpus_) gpu.daemon_runs = false;
  for (const std::string& uuid : snapshot.daemons) gpus_[uuid].daemon_runs = true;

  const bool was_up = std::exchange(engine_up_, snapshot.containers.has_value());
  if (!engine_up_) return;
  containers_ = std::move(*snapshot.containers);
  containers_seq_ = token;
  // Nobody could pass a gate while the engine was away: that time does not count.
  if (was_up) return;
  for (auto& [id, memory] : memory_) memory.gate = HealthGate();
}

AgentLogic::InFlight& AgentLogic::issue(Action action, TimeMs now_ms) {
  InFlight entry;
  entry.issued_seq = ++seq_;
  action.id = entry.issued_seq;
  const TimeMs limit_ms = std::visit(DeadlineOf{}, action.what);
  entry.deadline_ms = now_ms + limit_ms;
  action.start_by_ms = now_ms + std::min(kQueueMs, limit_ms / 4);
  std::visit(
      [&](const auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, CreateContainer>) {
          entry.container_id = what.plan.container.id;
        } else if constexpr (std::is_same_v<What, PullImage>) {
          entry.image = what.image;
        } else if constexpr (requires { what.gpu_uuid; }) {
          entry.gpu_uuid = what.gpu_uuid;
        } else {
          entry.container_id = what.container_id;
        }
      },
      action.what);
  if (!entry.container_id.empty()) busy_containers_[entry.container_id] = action.id;
  if (!entry.gpu_uuid.empty()) busy_gpus_[entry.gpu_uuid] = action.id;
  if (!entry.image.empty()) busy_images_[entry.image] = action.id;
  entry.action = action;
  out_.push_back(std::move(action));
  return in_flight_[entry.issued_seq] = std::move(entry);
}

void AgentLogic::finish(const ActionResult& result, TimeMs now_ms) {
  const auto found = in_flight_.find(result.action_id);
  if (found == in_flight_.end()) {
    // Late or doubled. Whatever it did, a snapshot from now on shows it.
    const std::uint64_t now_seq = ++seq_;
    for (auto& [id, memory] : memory_) memory.settled_seq = now_seq;
    for (auto& [uuid, gpu] : gpus_) gpu.settled_seq = now_seq;
    return;
  }
  const InFlight ended = std::move(found->second);
  in_flight_.erase(found);
  conclude(ended, result.status, now_ms);
}

void AgentLogic::expire_actions(TimeMs now_ms) {
  for (auto at = in_flight_.begin(); at != in_flight_.end();) {
    if (now_ms < at->second.deadline_ms) {
      ++at;
      continue;
    }
    const InFlight ended = std::move(at->second);
    at = in_flight_.erase(at);
    conclude(ended, base::fail(ErrorCode::kTimeout, describe(ended.action) + ": no answer"),
             now_ms);
  }
}

void AgentLogic::conclude(const InFlight& ended, const Status& status, TimeMs now_ms) {
  if (!ended.gpu_uuid.empty()) {
    busy_gpus_.erase(ended.gpu_uuid);
    return conclude_daemon(ended, status, now_ms);
  }
  if (!ended.image.empty()) {
    busy_images_.erase(ended.image);
    return conclude_pull(ended, status, now_ms);
  }
  busy_containers_.erase(ended.container_id);
  Memory& memory = memory_[ended.container_id];
  memory.settled_seq = ++seq_;
  if (status) {
    memory.retry.reset();
    memory.timeouts = 0;
    return;
  }
  memory.retry.failed(now_ms);
  if (std::holds_alternative<CreateContainer>(ended.action.what)) {
    conclude_create(memory, status, now_ms);
  } else if (std::holds_alternative<StartContainer>(ended.action.what)) {
    conclude_start(memory, status, now_ms);
  } else if (std::holds_alternative<RemoveContainer>(ended.action.what)) {
    memory.failed_removals += engine_trouble(status.error().code) ? 0 : 1;
  }
}

void AgentLogic::conclude_create(Memory& memory, const Status& status, TimeMs) {
  const base::Error& error = status.error();
  if (engine_trouble(error.code)) return;
  if (error.code == ErrorCode::kTimeout) {
    if (++memory.timeouts >= kAttempts) memory.failure = "DockerTimeoutError: " + error.message;
    return;
  }
  // Most likely made by an earlier create whose answer was lost; then the next snapshot has it.
  if (error.code == ErrorCode::kConflict && ++memory.conflicts < kAttempts) return;
  if (error.code == ErrorCode::kNotFound) {
    // The image has gone since it was made available.
    memory.image_ready = false;
    if (++memory.missing_images < kAttempts) return;
    memory.failure = "CannotPullContainerError: " + error.message;
    return;
  }
  memory.failure = "CannotCreateContainerError: " + error.message;
}

void AgentLogic::conclude_start(Memory& memory, const Status& status, TimeMs) {
  const base::Error& error = status.error();
  // Gone: the next snapshot shows it.
  if (engine_trouble(error.code) || error.code == ErrorCode::kNotFound) return;
  if (error.code == ErrorCode::kTimeout) {
    if (++memory.timeouts >= kAttempts) memory.failure = "DockerTimeoutError: " + error.message;
    return;
  }
  memory.failure = "CannotStartContainerError: " + error.message;
}

std::vector<Action> AgentLogic::step(TimeMs now_ms) {
  out_.clear();
  expire_actions(now_ms);
  if (!full_desired_ || !engine_up_) return {};
  index_engine();
  for (const auto& [id, task] : desired_) {
    observe_task(task);
    if (fail_impossible_starts(task, now_ms)) observe_task(task);
  }
  measure_gpu_use(now_ms);
  fail_closed_gates(now_ms);
  step_images(now_ms);
  for (const auto& [uuid, use] : use_) step_gpu(uuid, now_ms);
  for (const auto& [id, task] : desired_) step_task(task, now_ms);
  for (const std::size_t index : strays_) step_stray(containers_[index], now_ms);
  forget_gone();
  return std::exchange(out_, {});
}

void AgentLogic::index_engine() {
  primary_.clear();
  strays_.clear();
  std::set<std::string> desired_ids;
  for (const auto& [task_id, task] : desired_) {
    for (const DesiredContainer& container : task.containers) desired_ids.insert(container.id);
  }
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    const std::string id = label_of(containers_[i], kContainerLabel);
    // Somebody else's that carries our instance label by mistake.
    if (id.empty() || label_of(containers_[i], kTaskLabel).empty()) continue;
    if (!desired_ids.contains(id)) {
      strays_.push_back(i);
      continue;
    }
    const auto [at, fresh] = primary_.emplace(id, i);
    if (fresh) continue;
    if (rank(containers_[i]) > rank(containers_[at->second])) {
      strays_.push_back(std::exchange(at->second, i));
    } else {
      strays_.push_back(i);
    }
  }
}

const ContainerState* AgentLogic::find_state(const std::string& container_id) const {
  const auto found = primary_.find(container_id);
  return found == primary_.end() ? nullptr : &containers_[found->second];
}

bool AgentLogic::settled(const std::string& container_id) const {
  if (busy_containers_.contains(container_id)) return false;
  const auto found = memory_.find(container_id);
  return found == memory_.end() || containers_seq_ > found->second.settled_seq;
}

bool AgentLogic::starting(const std::string& container_id) const {
  const auto found = busy_containers_.find(container_id);
  return found != busy_containers_.end() &&
         std::holds_alternative<StartContainer>(in_flight_.at(found->second).action.what);
}

bool AgentLogic::ending(const DesiredTask& task) const {
  if (task.stop) return true;
  return std::any_of(task.containers.begin(), task.containers.end(), [&](const auto& container) {
    return memory_.at(container.id).ends_task ||
           (container.definition.essential && unwanted(container, false));
  });
}

bool AgentLogic::unwanted(const DesiredContainer& container, bool task_ends) const {
  if (task_ends) return true;
  const Memory& memory = memory_.at(container.id);
  return memory.last.status == ContainerStatus::kStopped || !memory.failure.empty();
}

bool AgentLogic::all_created(const DesiredTask& task) const {
  return std::all_of(task.containers.begin(), task.containers.end(), [&](const auto& container) {
    return find_state(container.id) != nullptr || unwanted(container, false);
  });
}

bool AgentLogic::ready(const DesiredTask& task, const DesiredContainer& container,
                       TimeMs now_ms) const {
  const ContainerState* state = find_state(container.id);
  if (state == nullptr || !settled(container.id) || unwanted(container, ending(task)) ||
      !memory_.at(container.id).retry.due(now_ms)) {
    return false;
  }
  if (state->phase == ContainerPhase::kStopped) return restart_due(container, *state);
  return state->phase == ContainerPhase::kCreated && all_created(task) &&
         dependencies_met(task, container, now_ms);
}

void AgentLogic::step_task(const DesiredTask& task, TimeMs now_ms) {
  const bool task_ends = ending(task);
  for (const DesiredContainer& container : task.containers) {
    if (!settled(container.id) || !memory_.at(container.id).retry.due(now_ms)) continue;
    const bool unwanted_now = unwanted(container, task_ends);
    const ContainerState* state = find_state(container.id);
    if (state == nullptr) {
      if (unwanted_now || !memory_.at(container.id).image_ready ||
          awaits_daemon(task, container, now_ms)) {
        continue;
      }
      if (!may_create(task, container)) continue;
      issue({0, CreateContainer{plan_container(task, container)}}, now_ms);
    } else if (state->phase == ContainerPhase::kRunning && unwanted_now) {
      if (task_ends && !may_stop(task, container)) continue;
      issue({0, StopContainer{container.id, state->id,
                              container.definition.stop_timeout_s.value_or(
                                  base::limits::kStopTimeoutSecondsDefault)}},
            now_ms);
    } else if (state->phase == ContainerPhase::kCreated && unwanted_now) {
      issue({0, RemoveContainer{container.id, state->id}}, now_ms);
    } else if (ready(task, container, now_ms) && gpus_permit(container, now_ms)) {
      issue({0, StartContainer{container.id, state->id}}, now_ms);
      memory_.at(container.id).ran = true;  // for all we may ever know
      if (!std::holds_alternative<core::WholeGpus>(container.definition.gpu)) continue;
      for (const std::string& uuid : container.gpu_uuids) {
        use_[uuid].whole_active.insert(container.id);
      }
    }
  }
}

void AgentLogic::step_stray(const ContainerState& state, TimeMs now_ms) {
  const std::string id = label_of(state, kContainerLabel);
  Memory& memory = memory_[id];
  if (!settled(id) || !memory.retry.due(now_ms)) return;
  if (state.phase == ContainerPhase::kRunning) {
    // One that was reported stopped holds no reservation any more: somebody has started it again.
    const bool reported = memory.last.status == ContainerStatus::kStopped;
    issue({0, StopContainer{id, state.id, reported ? 0 : base::limits::kStopTimeoutSecondsDefault}},
          now_ms);
    return;
  }
  if (state.phase == ContainerPhase::kStopped) {
    if (memory.first_seen_stopped_ms == 0) memory.first_seen_stopped_ms = now_ms;
    const TimeMs finished_at_ms =
        state.finished_at_ms != 0 ? state.finished_at_ms : memory.first_seen_stopped_ms;
    if (now_ms < finished_at_ms + options_.cleanup_wait_ms) return;
  }
  // One that was created and never ran has nothing to look into.
  issue({0, RemoveContainer{id, state.id}}, now_ms);
}

void AgentLogic::forget_gone() {
  std::set<std::string> known;
  for (const auto& [task_id, task] : desired_) {
    for (const DesiredContainer& container : task.containers) known.insert(container.id);
  }
  for (const ContainerState& state : containers_) known.insert(label_of(state, kContainerLabel));
  std::erase_if(pull_times_, [&](const auto& entry) { return !desired_.contains(entry.first); });
  std::erase_if(memory_, [&](const auto& entry) {
    return !known.contains(entry.first) && settled(entry.first);
  });
  std::erase_if(gpus_, [&](const auto& entry) {
    const GpuUse& use = use_.at(entry.first);
    return !entry.second.daemon_runs && daemons_seq_ > entry.second.settled_seq &&
           !busy_gpus_.contains(entry.first) && !use.sharing_active && use.whole_active.empty() &&
           !use.whole_ready;
  });
}

std::string AgentLogic::runtime_id_of(const std::string& container_id) const {
  const ContainerState* best = nullptr;
  for (const ContainerState& state : containers_) {
    if (label_of(state, kContainerLabel) != container_id) continue;
    if (best == nullptr || rank(state) > rank(*best)) best = &state;
  }
  return best == nullptr ? "" : best->id;
}

}  // namespace cotenant::agent
