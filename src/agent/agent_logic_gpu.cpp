// The part of the agent's logic that is about GPUs: who uses which, the daemons' lives, the gate.
#include <algorithm>
#include <string_view>

#include "agent/agent_logic.h"
#include "agent/labels.h"

namespace cotenant::agent {
namespace {

using base::TimeMs;
using core::DesiredContainer;
using core::DesiredTask;
using ports::ContainerPhase;
using ports::ContainerState;

std::vector<std::string> split_commas(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

}  // namespace

void AgentLogic::measure_gpu_use(TimeMs now_ms) {
  use_.clear();
  for (const auto& [uuid, gpu] : gpus_) use_[uuid];
  for (const auto& [task_id, task] : desired_) {
    for (const DesiredContainer& container : task.containers) {
      if (!std::holds_alternative<core::NoGpu>(container.definition.gpu)) {
        measure_container(task, container, now_ms);
      }
    }
  }
  for (const std::size_t index : strays_) measure_stray(containers_[index]);
  for (const auto& [uuid, use] : use_) {
    Gpu& gpu = gpus_[uuid];
    if (use.sharing_active) {
      gpu.idle_since_ms.reset();
    } else if (!gpu.idle_since_ms) {
      gpu.idle_since_ms = now_ms;
    }
  }
}

void AgentLogic::measure_container(const DesiredTask& task, const DesiredContainer& container,
                                   TimeMs now_ms) {
  const bool sharing = std::holds_alternative<core::SharedGpu>(container.definition.gpu);
  const ContainerState* state = find_state(container.id);
  const bool active =
      (state != nullptr && state->phase == ContainerPhase::kRunning) || starting(container.id);
  const bool wanted = !unwanted(container, ending(task));
  const bool is_ready = ready(task, container, now_ms);
  for (const std::string& uuid : container.gpu_uuids) {
    GpuUse& use = use_[uuid];
    if (sharing) {
      use.sharing_wanted = use.sharing_wanted || wanted;
      use.sharing_active = use.sharing_active || wanted || active;
      if (is_ready || awaits_daemon(task, container, now_ms)) use.waiting.push_back(container.id);
    } else {
      if (active) use.whole_active.insert(container.id);
      use.whole_ready = use.whole_ready || is_ready;
    }
  }
}

void AgentLogic::measure_stray(const ContainerState& state) {
  // One whose start was in flight when its task ceased to be desired may run any moment.
  if (state.phase != ContainerPhase::kRunning && !starting(label_of(state, kContainerLabel))) {
    return;
  }
  const std::string mode = label_of(state, kGpuModeLabel);
  for (const std::string& uuid : split_commas(label_of(state, kGpusLabel))) {
    if (mode == kGpuModeMps) {
      use_[uuid].sharing_active = true;
    } else {
      use_[uuid].whole_active.insert(state.id);
    }
  }
}

void AgentLogic::fail_closed_gates(TimeMs now_ms) {
  for (auto& [uuid, use] : use_) {
    std::erase_if(use.waiting, [&, gpu = uuid](const std::string& id) {
      if (gate_open(id, gpu, now_ms)) return true;
      Memory& memory = memory_.at(id);
      const std::optional<std::string> failure = memory.gate.failure(now_ms);
      if (failure) memory.failure = *failure;
      return failure.has_value();
    });
  }
}

void AgentLogic::step_gpu(const std::string& uuid, TimeMs now_ms) {
  const GpuUse& use = use_.at(uuid);
  Gpu& gpu = gpus_.at(uuid);
  if (busy_gpus_.contains(uuid) || daemons_seq_ <= gpu.settled_seq) return;

  std::vector<std::string> due;
  for (const std::string& id : use.waiting) {
    if (memory_.at(id).gate.due(now_ms)) due.push_back(id);
  }
  if (!gpu.daemon_runs) gpu.good_probe_seq = 0;
  if ((!gpu.daemon_runs || gpu.suspect) && use.sharing_wanted) {
    const bool attempt = !due.empty() || (!gpu.daemon_runs && gpu.retry.due(now_ms));
    if (attempt && use.whole_active.empty()) issue({0, StartDaemon{uuid}}, now_ms).gated = due;
  } else if (!gpu.daemon_runs) {
    return;
  } else if (!use.sharing_active) {
    const bool idle = now_ms >= gpu.idle_since_ms.value_or(now_ms) + options_.daemon_linger_ms;
    if ((use.whole_ready || idle) && gpu.retry.due(now_ms)) issue({0, StopDaemon{uuid}}, now_ms);
  } else if (!due.empty()) {
    for (const std::string& id : due) memory_.at(id).gate.begin(now_ms);
    issue({0, ProbeDaemon{uuid}}, now_ms).gated = due;
  }
}

bool AgentLogic::daemon_usable(const std::string& gpu_uuid) const {
  const auto gpu = gpus_.find(gpu_uuid);
  if (gpu == gpus_.end() || !gpu->second.daemon_runs || daemons_seq_ <= gpu->second.settled_seq) {
    return false;
  }
  const auto busy = busy_gpus_.find(gpu_uuid);
  return busy == busy_gpus_.end() ||
         !std::holds_alternative<StopDaemon>(in_flight_.at(busy->second).action.what);
}

bool AgentLogic::awaits_daemon(const DesiredTask& task, const DesiredContainer& container,
                               TimeMs now_ms) const {
  return std::holds_alternative<core::SharedGpu>(container.definition.gpu) &&
         find_state(container.id) == nullptr && settled(container.id) &&
         !unwanted(container, ending(task)) && memory_.at(container.id).image_ready &&
         memory_.at(container.id).retry.due(now_ms) &&
         !std::all_of(container.gpu_uuids.begin(), container.gpu_uuids.end(),
                      [&](const std::string& uuid) { return daemon_usable(uuid); });
}

bool AgentLogic::gate_open(const std::string& container_id, const std::string& gpu_uuid,
                           TimeMs now_ms) const {
  if (!daemon_usable(gpu_uuid)) return false;
  const Gpu& gpu = gpus_.at(gpu_uuid);
  return gpu.good_probe_seq > memory_.at(container_id).created_seq &&
         now_ms <= gpu.good_probe_at_ms + HealthGate::kWindowMs;
}

bool AgentLogic::gpus_permit(const DesiredContainer& container, TimeMs now_ms) const {
  if (std::holds_alternative<core::NoGpu>(container.definition.gpu)) return true;
  const bool sharing = std::holds_alternative<core::SharedGpu>(container.definition.gpu);
  // A sharing container has exactly one GPU; others cannot even be created (container_spec.h).
  if (sharing && container.gpu_uuids.size() != 1) return false;
  return std::all_of(container.gpu_uuids.begin(), container.gpu_uuids.end(),
                     [&](const std::string& uuid) {
                       const GpuUse& use = use_.at(uuid);
                       const Gpu& gpu = gpus_.at(uuid);
                       if (!use.whole_active.empty()) return false;
                       if (sharing) return gate_open(container.id, uuid, now_ms);
                       return !use.sharing_active && !gpu.daemon_runs &&
                              daemons_seq_ > gpu.settled_seq && !busy_gpus_.contains(uuid);
                     });
}

void AgentLogic::conclude_daemon(const InFlight& ended, const base::Status& status, TimeMs now_ms) {
  Gpu& gpu = gpus_[ended.gpu_uuid];
  if (std::holds_alternative<ProbeDaemon>(ended.action.what)) {
    if (status) {
      gpu.good_probe_seq = ended.issued_seq;
      gpu.good_probe_at_ms = now_ms;
    } else {
      gpu.good_probe_seq = 0;
      gpu.settled_seq = ++seq_;  // it may be gone
      gpu.suspect = status.error().code != base::ErrorCode::kTimeout;
    }
  } else {
    gpu.settled_seq = ++seq_;
    if (status) {
      gpu.suspect = false;
      gpu.retry.reset();
    } else {
      gpu.retry.failed(now_ms);
    }
  }
  for (const std::string& id : ended.gated) {
    const auto found = memory_.find(id);
    if (found == memory_.end()) continue;
    if (!status) {
      found->second.gate.fail_attempt(status.error().code, now_ms);
    } else if (std::holds_alternative<ProbeDaemon>(ended.action.what)) {
      found->second.gate = HealthGate();
    }
  }
}

}  // namespace cotenant::agent
