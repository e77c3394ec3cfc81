// Agents that come and go.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/limits.h"
#include "core/reducer_rules.h"

namespace cotenant::core::rules {
namespace {

namespace limits = base::limits;
using base::ErrorCode;
using base::fail;

// Reservations rest on the GPUs. One that is in use and is not there any more, or cannot hold any more
// what it holds, stays as it was registered, out of service, so that the instance can be with us and
// its other tasks go on. Idle ones may come, go and change.
Result<InstanceRegistration> keep_gpus_in_use(const Instance& known, InstanceRegistration now) {
  const GpuLedger offered(now.gpus);
  for (std::size_t gpu = 0; gpu < known.gpus.size(); ++gpu) {
    const SharingMode mode = known.gpus.mode(gpu);
    if (mode == SharingMode::kIdle) continue;
    GpuDevice kept = known.gpus.device(gpu);
    const auto same = std::find_if(now.gpus.begin(), now.gpus.end(), [&](const GpuDevice& device) {
      return device.uuid == kept.uuid;
    });
    if (same == now.gpus.end()) {
      kept.unavailable = "it is not there any more";
      const std::size_t at = std::min(gpu, now.gpus.size());
      now.gpus.insert(now.gpus.begin() + static_cast<std::ptrdiff_t>(at), std::move(kept));
      continue;
    }
    const std::int64_t held_mib = known.gpus.total_mib(gpu) - known.gpus.remaining_mib(gpu);
    if (mode == SharingMode::kDedicated ||
        offered.holds(offered.find(kept.uuid).value(), held_mib, known.gpus.container_count(gpu))) {
      continue;
    }
    kept.unavailable = "it is smaller now than what its containers hold";
    *same = std::move(kept);
  }
  if (now.gpus.size() <= limits::kGpusPerInstance) return now;
  return fail(
      ErrorCode::kInvalidParameter,
      fmt::format("instance {}: with the GPUs that are in use and not there any more it has "
                  "{}; at most {} are possible",
                  now.id, now.gpus.size(), limits::kGpusPerInstance));
}

// Takes over the new GPUs, with the reservations that the instance's tasks hold on them.
void replace_registration(State& state, Instance& instance,
                          const InstanceRegistration& registration) {
  const std::set<std::string> task_ids = instance.task_ids;
  for (const std::string& task_id : task_ids) release(state, state.tasks.at(task_id));
  instance.gpus = GpuLedger(registration.gpus);
  instance.registration = registration;
  instance_changed(state, instance);
  for (const std::string& task_id : task_ids) reserve(state, state.tasks.at(task_id));
}

base::Status check_instance_counts(const State& state, const InstanceRegistration& registration) {
  const auto in_cluster =
      std::count_if(state.instances.begin(), state.instances.end(), [&](const auto& entry) {
        return entry.second.registration.cluster == registration.cluster &&
               entry.second.status != InstanceStatus::kInactive;
      });
  if (static_cast<std::size_t>(in_cluster) < limits::kInstancesPerCluster &&
      state.instances.size() < limits::kInstances) {
    return {};
  }
  return fail(ErrorCode::kLimitExceeded,
              fmt::format("instance {}: cluster '{}' has {} container instances and the control "
                          "plane {}; at most {} and {} are possible",
                          registration.id, registration.cluster, in_cluster, state.instances.size(),
                          limits::kInstancesPerCluster, limits::kInstances));
}

// An instance that registers starts with nothing reserved: so nothing of cotenant's may run on it.
std::string must_stop_first(const State& state, const ConnectInstance& command) {
  const auto known = state.instances.find(command.registration.id);
  if (known != state.instances.end() && !known->second.task_ids.empty()) {
    return fmt::format("instance {} is being deregistered: {} task(s) are still to be given up",
                       command.registration.id, known->second.task_ids.size());
  }
  if (command.running_task_ids.empty()) return {};
  return fmt::format(
      "instance {} {}, but containers of {} task(s) still run on it, such as {}; they "
      "are to be stopped before it joins",
      command.registration.id,
      known == state.instances.end() ? "is not registered" : "was deregistered",
      command.running_task_ids.size(), command.running_task_ids.front());
}

}  // namespace

Result<Outcome> connect_instance(State& state, const ConnectInstance& command,
                                 const Context& context) {
  const InstanceRegistration& registration = command.registration;
  if (auto status = require_cluster(state, registration.cluster); !status) {
    return fail(status.error());
  }
  Outcome outcome;
  const auto known = state.instances.find(registration.id);
  const bool fresh =
      known == state.instances.end() || known->second.status == InstanceStatus::kInactive;
  if (fresh) {
    if (auto status = check_instance_counts(state, registration); !status) {
      return fail(status.error());
    }
    if (std::string why = must_stop_first(state, command); !why.empty()) {
      outcome.reply = ConnectReply{std::move(why)};
      return outcome;
    }
  }
  outcome.effects.changed_records.insert({RecordKind::kInstance, registration.id});
  if (fresh) {
    Instance instance;
    instance.registration = registration;
    instance.number = state.next_instance_number++;
    instance.registered_at_ms = context.now_ms;
    instance.agent_connected = true;
    instance.connection_epoch = command.epoch;
    instance.gpus = GpuLedger(registration.gpus);
    // The one that was deregistered is forgotten: this is another registration.
    if (known != state.instances.end()) remove_instance(state, registration.id);
    add_instance(state, std::move(instance));
    return outcome;
  }

  Instance& instance = known->second;
  if (instance.registration.cluster != registration.cluster) {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("instance {} is registered in cluster '{}', not in '{}'",
                            registration.id, instance.registration.cluster, registration.cluster));
  }
  // Two connections of one epoch are two agents with one identity, a copied data folder.
  const bool older = command.epoch < instance.connection_epoch ||
                     (instance.agent_connected && command.epoch == instance.connection_epoch);
  if (older) {
    return fail(
        ErrorCode::kConflict,
        fmt::format("instance {}: another connection (epoch {}) of the same agent is there; does a "
                    "second agent use a copy of its data folder?",
                    registration.id, instance.connection_epoch));
  }
  const Result<InstanceRegistration> merged = keep_gpus_in_use(instance, registration);
  if (!merged) return fail(merged.error());
  if (instance.registration != *merged) {
    replace_registration(state, instance, *merged);
    ++instance.version;
  } else {
    outcome.effects.changed_records.clear();
  }
  instance.agent_connected = true;
  instance.connection_epoch = command.epoch;
  instance_changed(state, instance);
  return outcome;
}

Result<Outcome> disconnect_instance(State& state, const DisconnectInstance& command) {
  const auto found = state.instances.find(command.instance_id);
  if (found != state.instances.end() && found->second.connection_epoch == command.epoch) {
    found->second.agent_connected = false;
    instance_changed(state, found->second);
  }
  return Outcome{};
}

}  // namespace cotenant::core::rules
