#include "sim/state_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "codec/record.h"

namespace cotenant::sim {
namespace {

using core::ContainerStatus;
using core::TaskStatus;

// What the tasks of one instance hold of one GPU, counted from their definitions.
struct Held {
  std::int64_t shared_mib = 0;
  int shared_containers = 0;
  std::set<std::string> sharing_tasks;
  std::set<std::string> whole_tasks;
};

}  // namespace

void StateChecks::check(const core::State& state) {
  for (const auto& [id, task] : state.tasks) {
    check_task(state, task);
    check_history(task);
  }
  for (auto at = seen_.begin(); at != seen_.end();) {
    const bool gone = !state.tasks.contains(at->first);
    if (gone && at->second.last_status != TaskStatus::kStopped) {
      journal_.violation("task {} is gone and was {}", at->first,
                         core::to_string(at->second.last_status));
    }
    if (gone) forgotten_.insert(at->first);
    at = gone ? seen_.erase(at) : std::next(at);
  }
  for (const auto& [id, instance] : state.instances) check_instance(state, instance);
  check_clusters(state);
}

// A cluster that is deleted is empty, and stays so.
void StateChecks::check_clusters(const core::State& state) {
  const auto is_active = [&](const std::string& name) {
    const auto found = state.clusters.find(name);
    return found != state.clusters.end() && found->second.active();
  };
  for (const auto& [id, instance] : state.instances) {
    if (instance.status == core::InstanceStatus::kInactive) continue;
    if (is_active(instance.registration.cluster)) continue;
    journal_.violation("instance {} is in the cluster {}, which is not there", id,
                       instance.registration.cluster);
  }
  for (const auto& [id, task] : state.tasks) {
    if (!core::holds_reservation(task) || is_active(task.cluster)) continue;
    journal_.violation("task {} runs in the cluster {}, which is not there", id, task.cluster);
  }
}

void StateChecks::check_task(const core::State& state, const core::Task& task) {
  const auto instance = state.instances.find(task.instance_id);
  const core::TaskDefinitionPtr definition =
      core::find_definition(state, task.family, task.revision);
  // One that has stopped outlives its instance for a while.
  if (instance == state.instances.end() && !core::holds_reservation(task)) return;
  if (instance == state.instances.end() || definition == nullptr) {
    return journal_.violation("task {} has no instance or no definition", task.id);
  }
  const bool holds = instance->second.task_ids.contains(task.id);
  if (holds != core::holds_reservation(task)) {
    journal_.violation("task {} is {} and {} a reservation", task.id,
                       core::to_string(task.last_status), holds ? "holds" : "does not hold");
  }
  std::size_t stopped = 0;
  std::set<std::string> shared_gpus;
  std::set<std::string> whole_gpus;
  for (const core::TaskContainer& container : task.containers) {
    if (container.status == ContainerStatus::kStopped) ++stopped;
    const core::ContainerDefinition* part = core::find_container(*definition, container.name);
    if (part == nullptr) {
      journal_.violation("task {} has a container {} of no definition", task.id, container.name);
      continue;
    }
    const std::size_t gpus = container.gpu_uuids.size();
    if (std::holds_alternative<core::SharedGpu>(part->gpu)) {
      shared_gpus.insert(container.gpu_uuids.begin(), container.gpu_uuids.end());
      if (gpus != 1) journal_.violation("task {}: {} shares {} GPUs", task.id, part->name, gpus);
    } else if (const auto* whole = std::get_if<core::WholeGpus>(&part->gpu)) {
      for (const std::string& uuid : container.gpu_uuids) {
        if (!whole_gpus.insert(uuid).second) {
          journal_.violation("task {} was given {} twice", task.id, uuid);
        }
      }
      const std::size_t wanted = whole->all ? instance->second.registration.gpus.size()
                                            : static_cast<std::size_t>(whole->count);
      if (gpus != wanted) journal_.violation("task {}: {} of {} GPUs", task.id, gpus, wanted);
    } else if (gpus != 0) {
      journal_.violation("task {}: {} asked for no GPU and has {}", task.id, part->name, gpus);
    }
  }
  if (shared_gpus.size() > 1) {
    journal_.violation("task {}: its sharing containers are on {} GPUs", task.id,
                       shared_gpus.size());
  }
  if ((task.last_status == TaskStatus::kStopped) != (stopped == task.containers.size())) {
    journal_.violation("task {} is {} with {} of {} containers stopped", task.id,
                       core::to_string(task.last_status), stopped, task.containers.size());
  }
}

void StateChecks::check_history(const core::Task& task) {
  const auto [at, fresh] = seen_.try_emplace(task.id);
  Seen& seen = at->second;
  if (!fresh && (task.last_status < seen.last_status || task.version < seen.version ||
                 (seen.desired_status == core::DesiredStatus::kStopped &&
                  task.desired_status == core::DesiredStatus::kRunning))) {
    journal_.violation("task {} went back from {} (desired {}, version {}) to {} ({}, {})", task.id,
                       core::to_string(seen.last_status), core::to_string(seen.desired_status),
                       seen.version, core::to_string(task.last_status),
                       core::to_string(task.desired_status), task.version);
  }
  seen = {task.last_status, task.desired_status, task.version};
}

void StateChecks::check_instance(const core::State& state, const core::Instance& instance) {
  const core::InstanceRegistration& registration = instance.registration;
  std::int64_t cpu_units = 0;
  std::int64_t memory_mib = 0;
  std::map<std::string, Held> held;
  for (const std::string& task_id : instance.task_ids) {
    const auto found = state.tasks.find(task_id);
    if (found == state.tasks.end() || found->second.instance_id != registration.id) {
      journal_.violation("instance {} holds a reservation of task {}, which is not its own",
                         registration.id, task_id);
      continue;
    }
    const core::TaskDefinitionPtr definition =
        core::find_definition(state, found->second.family, found->second.revision);
    if (definition == nullptr) continue;  // told by check_task
    for (const core::ContainerDefinition& part : definition->containers) {
      cpu_units += part.cpu_units;
      memory_mib += part.memory_reservation_mib.value_or(part.memory_mib.value_or(0));
    }
    for (const core::TaskContainer& container : found->second.containers) {
      const core::ContainerDefinition* part = core::find_container(*definition, container.name);
      if (part == nullptr) continue;
      for (const std::string& uuid : container.gpu_uuids) {
        if (const auto* shared = std::get_if<core::SharedGpu>(&part->gpu)) {
          held[uuid].shared_mib += shared->memory_mib;
          ++held[uuid].shared_containers;
          held[uuid].sharing_tasks.insert(task_id);
        } else {
          held[uuid].whole_tasks.insert(task_id);
        }
      }
    }
  }
  if (cpu_units != instance.used_cpu_units || memory_mib != instance.used_memory_mib ||
      cpu_units > registration.cpu_units || memory_mib > registration.memory_mib) {
    journal_.violation(
        "instance {}: tasks hold {} CPU units and {} MiB; counted are {} and {}, "
        "there are {} and {}",
        registration.id, cpu_units, memory_mib, instance.used_cpu_units, instance.used_memory_mib,
        registration.cpu_units, registration.memory_mib);
  }
  for (const core::GpuDevice& gpu : registration.gpus) {
    const Held own = std::exchange(held[gpu.uuid], {});
    held.erase(gpu.uuid);
    if (own.whole_tasks.size() > 1 || (!own.whole_tasks.empty() && !own.sharing_tasks.empty())) {
      journal_.violation("{}: {} tasks hold it whole, {} share it", gpu.uuid,
                         own.whole_tasks.size(), own.sharing_tasks.size());
    }
    if (own.shared_mib > gpu.memory_mib.value_or(0)) {
      journal_.violation("{}: {} of {} MiB are reserved", gpu.uuid, own.shared_mib,
                         gpu.memory_mib.value_or(0));
    }
    if (own.shared_containers > 0 && own.shared_containers > gpu.client_slots - 1) {
      journal_.violation("{}: {} containers on {} client slots", gpu.uuid, own.shared_containers,
                         gpu.client_slots);
    }
    const auto slot = instance.gpus.find(gpu.uuid);
    if (!slot) {
      journal_.violation("{} is registered and not in the ledger", gpu.uuid);
      continue;
    }
    const core::SharingMode mode = !own.whole_tasks.empty()     ? core::SharingMode::kDedicated
                                   : !own.sharing_tasks.empty() ? core::SharingMode::kNvidiaMps
                                                                : core::SharingMode::kIdle;
    const std::int64_t remaining_mib =
        mode == core::SharingMode::kDedicated ? 0 : gpu.memory_mib.value_or(0) - own.shared_mib;
    if (instance.gpus.mode(*slot) != mode || instance.gpus.remaining_mib(*slot) != remaining_mib) {
      journal_.violation("{}: the ledger says {} with {} MiB left; by its tasks it is {} with {}",
                         gpu.uuid, core::to_string(instance.gpus.mode(*slot)),
                         instance.gpus.remaining_mib(*slot), core::to_string(mode), remaining_mib);
    }
  }
  for (const auto& [uuid, own] : held) {
    journal_.violation("instance {} has no GPU {}, which tasks hold", registration.id, uuid);
  }
}

void StateChecks::check_stored(const core::State& state,
                               const std::map<std::string, std::string>& records) {
  const std::map<std::string, std::string> own = encode_state(state);
  for (const auto& [key, value] : own) {
    const auto stored = records.find(key);
    if (stored == records.end()) {
      journal_.violation("{} is in the state and not in the store", key);
    } else if (stored->second != value) {
      journal_.violation("{} is {} in the state and {} in the store", key, value, stored->second);
    }
  }
  for (const auto& [key, value] : records) {
    if (key.starts_with("probe/") || own.contains(key)) continue;
    journal_.violation("{} is in the store and not in the state", key);
  }
  const auto decoded = codec::decode_records(records);
  if (!decoded) return journal_.violation("the store cannot be read: {}", decoded.error().message);
  const std::string here = reservations_of(state);
  const std::string there = reservations_of(*decoded);
  if (here != there)
    journal_.violation("reservations differ from a restart's: {} | {}", here, there);
}

std::map<std::string, std::string> encode_state(const core::State& state) {
  std::map<std::string, std::string> records;
  const auto add = [&](const core::RecordRef& ref) {
    if (auto value = codec::encode_record(state, ref)) records[codec::record_key(ref)] = *value;
  };
  using Kind = core::RecordKind;
  for (const auto& [name, cluster] : state.clusters) add({Kind::kCluster, name});
  for (const auto& [family, entry] : state.families) {
    // Stored once it has something to remember.
    if (entry.last_deleted_revision > 0) add({Kind::kTaskDefinitionFamily, family});
    for (const auto& [revision, definition] : entry.revisions) {
      add({Kind::kTaskDefinition, family, revision});
    }
  }
  for (const auto& [id, instance] : state.instances) add({Kind::kInstance, id});
  for (const auto& [id, task] : state.tasks) add({Kind::kTask, id});
  for (const auto& [key, setting] : state.account_settings) {
    add({Kind::kAccountSetting, key.first + "/" + key.second});
  }
  for (const auto& [key, token] : state.client_tokens) add({Kind::kClientToken, key});
  for (const auto& [cluster, workload] : state.workloads) {
    add({Kind::kWorkload, cluster});
    for (std::size_t i = 0; i < workload.shapes().size(); ++i) {
      add({Kind::kWorkloadShape, cluster, static_cast<std::int64_t>(i)});
    }
  }
  return records;
}

std::string reservations_of(const core::State& state) {
  std::string text;
  for (const auto& [id, instance] : state.instances) {
    text += fmt::format("{}: {} {} [{}]", id, instance.used_cpu_units, instance.used_memory_mib,
                        fmt::join(instance.task_ids, ","));
    for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
      text +=
          fmt::format(" {} {} {} [{}]", instance.gpus.device(gpu).uuid,
                      core::to_string(instance.gpus.mode(gpu)), instance.gpus.remaining_mib(gpu),
                      fmt::join(instance.gpus.task_ids(gpu), ","));
    }
    text += "; ";
  }
  return text;
}

}  // namespace cotenant::sim
