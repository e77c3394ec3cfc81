// Agents that come and go.
#include <fmt/format.h>

#include "core/reducer_rules.h"

namespace cotenant::core::rules {
namespace {

using base::ErrorCode;
using base::fail;

// Reservations rest on the registered GPUs: while a task holds one, they must not change.
base::Status check_same_gpus(const Instance& known, const InstanceRegistration& now) {
  if (known.registration.gpus == now.gpus) return {};
  for (std::size_t gpu = 0; gpu < known.gpus.size(); ++gpu) {
    if (known.gpus.mode(gpu) == SharingMode::kIdle) continue;
    return fail(
        ErrorCode::kInvalidParameter,
        fmt::format("instance {}: its GPUs have changed while GPU {} holds {} container(s); "
                    "stop them first, or restore the GPUs as they were registered",
                    now.id, known.gpus.device(gpu).uuid, known.gpus.container_count(gpu)));
  }
  return {};
}

}  // namespace

Result<Outcome> connect_instance(State& state, const ConnectInstance& command,
                                 const Context& context) {
  const InstanceRegistration& registration = command.registration;
  if (auto status = require_cluster(state, registration.cluster); !status) {
    return fail(status.error());
  }
  Outcome outcome;
  outcome.effects.changed_records.insert({RecordKind::kInstance, registration.id});

  const auto known = state.instances.find(registration.id);
  if (known == state.instances.end()) {
    Instance instance;
    instance.registration = registration;
    instance.number = state.next_instance_number++;
    instance.registered_at_ms = context.now_ms;
    instance.agent_connected = true;
    instance.connection_epoch = command.epoch;
    instance.gpus = GpuLedger(registration.gpus);
    state.instances.emplace(registration.id, std::move(instance));
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
  if (auto status = check_same_gpus(instance, registration); !status) return fail(status.error());

  if (instance.registration != registration) {
    if (instance.registration.gpus != registration.gpus) {
      instance.gpus = GpuLedger(registration.gpus);  // all IDLE: check_same_gpus has seen to it
    }
    instance.registration = registration;
    ++instance.version;
  } else {
    outcome.effects.changed_records.clear();
  }
  instance.agent_connected = true;
  instance.connection_epoch = command.epoch;
  return outcome;
}

Result<Outcome> disconnect_instance(State& state, const DisconnectInstance& command) {
  const auto found = state.instances.find(command.instance_id);
  if (found != state.instances.end() && found->second.connection_epoch == command.epoch) {
    found->second.agent_connected = false;
  }
  return Outcome{};
}

}  // namespace cotenant::core::rules
