// What must hold of any machine, whenever an action takes effect.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <variant>

#include "agent/labels.h"
#include "sim/container_gpus.h"
#include "sim/node.h"

namespace cotenant::sim {
namespace {

using ports::ContainerPhase;
using ports::ContainerState;

// The ceiling that the container was given, by its own environment: "0=<MiB>M".
std::int64_t limit_mib(const ports::ContainerSpec& spec) {
  for (const auto& variable : spec.environment) {
    if (variable.name == "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" && variable.value.size() > 2) {
      return std::atoll(variable.value.c_str() + 2);
    }
  }
  return -1;
}

}  // namespace

void Node::check_before(const agent::Action& action) {
  const std::vector<ContainerState> containers = runtime_.containers();
  const auto uses = [](const ContainerState& state, const std::string& uuid) {
    const std::vector<std::string> uuids = gpus_of(state);
    return std::find(uuids.begin(), uuids.end(), uuid) != uuids.end();
  };
  if (const auto* daemon = std::get_if<agent::StartDaemon>(&action.what)) {
    for (const ContainerState& state : containers) {
      if (state.phase == ContainerPhase::kRunning && uses(state, daemon->gpu_uuid) &&
          !is_sharing(state)) {
        env_.journal.violation("{}: a daemon starts below a whole-GPU container on {}", id(),
                               daemon->gpu_uuid);
      }
    }
  } else if (const auto* stopped = std::get_if<agent::StopDaemon>(&action.what)) {
    for (const ContainerState& state : containers) {
      if (state.phase == ContainerPhase::kRunning && uses(state, stopped->gpu_uuid) &&
          is_sharing(state)) {
        env_.journal.violation("{}: the daemon of {} is stopped below a sharing container", id(),
                               stopped->gpu_uuid);
      }
    }
  } else if (const auto* start = std::get_if<agent::StartContainer>(&action.what)) {
    const auto found =
        std::find_if(containers.begin(), containers.end(),
                     [&](const ContainerState& state) { return state.id == start->runtime_id; });
    if (away_ || found == containers.end() || found->phase == ContainerPhase::kRunning) return;
    if (!ever_started_.insert(start->container_id).second) {
      env_.journal.violation("{}: container {} runs twice", id(), found->name);
    }
    const std::string task_id = agent::label_of(*found, agent::kTaskLabel);
    if (!may_run_(task_id)) {
      env_.journal.violation("{}: {} starts, whose task {} holds no reservation", id(), found->name,
                             task_id);
    }
    for (const std::string& uuid : gpus_of(*found)) {
      if (std::none_of(registration_.gpus.begin(), registration_.gpus.end(),
                       [&](const core::GpuDevice& gpu) { return gpu.uuid == uuid; })) {
        env_.journal.violation("{}: {} starts on {}, which is not there", id(), found->name, uuid);
      }
      const std::vector<std::string> daemons = mps_.running();
      const bool has_daemon = std::find(daemons.begin(), daemons.end(), uuid) != daemons.end();
      if (!is_sharing(*found) && has_daemon) {
        env_.journal.violation("{}: {} takes the whole {} beside its daemon", id(), found->name,
                               uuid);
      }
      if (is_sharing(*found) && last_good_probe_[uuid] <= created_at_[start->container_id]) {
        env_.journal.violation("{}: {} starts before its gate", id(), found->name);
      }
    }
  }
}

void Node::check_gpus() {
  struct Use {
    std::int64_t shared_mib = 0;
    int sharing = 0;
    int whole = 0;
  };
  std::map<std::string, Use> uses;
  for (const ContainerState& state : runtime_.containers()) {
    if (state.phase != ContainerPhase::kRunning) continue;
    for (const std::string& uuid : gpus_of(state)) {
      Use& use = uses[uuid];
      if (!is_sharing(state)) {
        ++use.whole;
        continue;
      }
      ++use.sharing;
      const auto spec = runtime_.spec_of(state.id);
      const std::int64_t mib = spec ? limit_mib(*spec) : -1;
      if (mib <= 0) env_.journal.violation("{}: {} runs without a ceiling", id(), state.name);
      use.shared_mib += mib;
    }
  }
  for (const core::GpuDevice& gpu : registration_.gpus) {
    const Use& use = uses[gpu.uuid];
    if (use.whole > 1 || (use.whole > 0 && use.sharing > 0)) {
      env_.journal.violation("{}: {} runs {} whole-GPU and {} sharing containers", id(), gpu.uuid,
                             use.whole, use.sharing);
    }
    if (use.sharing > 0 && use.shared_mib > gpu.memory_mib.value_or(0)) {
      env_.journal.violation("{}: containers that run on {} may use {} of {} MiB", id(), gpu.uuid,
                             use.shared_mib, gpu.memory_mib.value_or(0));
    }
    if (use.sharing >= gpu.client_slots && use.sharing > 0) {
      env_.journal.violation("{}: {} clients on {} of {}", id(), use.sharing, gpu.uuid,
                             gpu.client_slots);
    }
  }
}

}  // namespace cotenant::sim
