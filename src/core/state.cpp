#include "core/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "core/container_override.h"
#include "core/placement/fleet_mirror.h"

namespace cotenant::core {

TaskDefinitionPtr find_definition(const State& state, const std::string& family,
                                  std::int64_t revision) {
  const auto found = state.families.find(family);
  if (found == state.families.end()) return nullptr;
  const auto at = found->second.revisions.find(revision);
  return at == found->second.revisions.end() ? nullptr : at->second;
}

TaskDefinitionPtr latest_definition(const State& state, const std::string& family) {
  const auto found = state.families.find(family);
  if (found == state.families.end()) return nullptr;
  const auto& revisions = found->second.revisions;
  for (auto at = revisions.rbegin(); at != revisions.rend(); ++at) {
    if (at->second->status == TaskDefinitionStatus::kActive) return at->second;
  }
  return nullptr;
}

TaskDefinitionPtr definition_of(const State& state, const Task& task) {
  TaskDefinitionPtr definition = find_definition(state, task.family, task.revision);
  COTENANT_ASSERT(definition != nullptr);
  return definition;
}

base::Status require_cluster(const State& state, const std::string& name) {
  const auto found = state.clusters.find(name);
  if (found != state.clusters.end() && found->second.active()) return {};
  return base::fail(
      base::ErrorCode::kClusterNotFound,
      fmt::format("cluster: '{}' {}; CreateCluster makes it", name,
                  found == state.clusters.end() ? "does not exist"
                                                : "is INACTIVE, because it was deleted"));
}

const Tags* find_tags(const State& state, const RecordRef& resource, const std::string& cluster) {
  if (resource.kind == RecordKind::kCluster) {
    const auto found = state.clusters.find(resource.id);
    return found == state.clusters.end() || !found->second.active() ? nullptr : &found->second.tags;
  }
  if (resource.kind == RecordKind::kInstance) {
    const auto found = state.instances.find(resource.id);
    if (found == state.instances.end()) return nullptr;
    return found->second.registration.cluster == cluster ? &found->second.tags : nullptr;
  }
  if (resource.kind == RecordKind::kTask) {
    const auto found = state.tasks.find(resource.id);
    if (found == state.tasks.end()) return nullptr;
    return found->second.cluster == cluster ? &found->second.tags : nullptr;
  }
  if (resource.kind != RecordKind::kTaskDefinition) return nullptr;
  const auto family = state.families.find(resource.id);
  if (family == state.families.end()) return nullptr;
  const auto at = family->second.revisions.find(resource.revision);
  return at == family->second.revisions.end() ? nullptr : &at->second->tags;
}

std::vector<const Instance*> active_instances(const State& state, const std::string& cluster) {
  std::vector<const Instance*> instances;
  for (const auto& [id, instance] : state.instances) {
    if (instance.registration.cluster == cluster && instance.status == InstanceStatus::kActive) {
      instances.push_back(&instance);
    }
  }
  std::sort(instances.begin(), instances.end(),
            [](const Instance* a, const Instance* b) { return a->number < b->number; });
  return instances;
}

bool has_active_instance(const State& state, const std::string& cluster) {
  return std::any_of(state.instances.begin(), state.instances.end(), [&](const auto& entry) {
    const Instance& instance = entry.second;
    return instance.registration.cluster == cluster && instance.status == InstanceStatus::kActive;
  });
}

std::string_view placement_policy(const Cluster& cluster) {
  const auto set = cluster.settings.find(kPlacementPolicySetting);
  return set == cluster.settings.end() ? kDefaultPlacementPolicy : std::string_view(set->second);
}

namespace {

void add_node(State& state, Instance& instance) {
  ClusterPlacement& placement = state.placements[instance.registration.cluster];
  instance.fleet_slot = placement.fleet.add(image_of(instance));
  placement.instance_ids.push_back(instance.registration.id);
}

}  // namespace

Instance& add_instance(State& state, Instance instance) {
  const std::string id = instance.registration.id;
  const auto [at, fresh] = state.instances.emplace(id, std::move(instance));
  COTENANT_ASSERT(fresh);
  add_node(state, at->second);
  return at->second;
}

void instance_changed(State& state, Instance& instance) {
  COTENANT_ASSERT(instance.fleet_slot.has_value());
  state.placements.at(instance.registration.cluster)
      .fleet.put(*instance.fleet_slot, image_of(instance));
}

void remove_instance(State& state, const std::string& id) {
  const auto found = state.instances.find(id);
  COTENANT_ASSERT(found != state.instances.end() && found->second.task_ids.empty());
  const Instance& instance = found->second;
  state.placements.at(instance.registration.cluster).fleet.remove(*instance.fleet_slot);
  state.instances.erase(found);
}

void rebuild_placements(State& state) {
  state.placements.clear();
  std::vector<Instance*> ordered;
  for (auto& [id, instance] : state.instances) ordered.push_back(&instance);
  std::sort(ordered.begin(), ordered.end(),
            [](const Instance* a, const Instance* b) { return a->number < b->number; });
  for (Instance* instance : ordered) {
    add_node(state, *instance);
  }
}

DesiredTask desired_task(const State& state, const Task& task) {
  const TaskDefinitionPtr definition = definition_of(state, task);
  DesiredTask desired;
  desired.task_id = task.id;
  desired.family = task.family;
  desired.revision = task.revision;
  desired.network_mode = definition->network_mode;
  desired.settings = definition->settings;
  desired.stop = task.desired_status == DesiredStatus::kStopped;
  for (const TaskContainer& container : task.containers) {
    const ContainerDefinition* part = find_container(*definition, container.name);
    COTENANT_ASSERT(part != nullptr);
    desired.containers.push_back({container.id, with_override(*part, task.overrides),
                                  container.gpu_uuids,
                                  container.status >= ContainerStatus::kRunning});
  }
  return desired;
}

std::vector<DesiredTask> desired_tasks(const State& state, const std::string& instance_id) {
  std::vector<DesiredTask> desired;
  const auto found = state.instances.find(instance_id);
  if (found == state.instances.end()) return desired;
  for (const std::string& task_id : found->second.task_ids) {
    desired.push_back(desired_task(state, state.tasks.at(task_id)));
  }
  return desired;
}

void hold_ports(State& state, const Task& task) {
  InstancePorts& ports = state.instances.at(task.instance_id).ports;
  ports.release(task.id);
  ports.hold(task.id, task_need(*definition_of(state, task), task.overrides).ports);
  for (const TaskContainer& container : task.containers) {
    ports.hold(task.id, ports_of(container.bindings));
  }
}

void reserve(State& state, const Task& task) {
  Instance& instance = state.instances.at(task.instance_id);
  const TaskNeed need = task_need(*definition_of(state, task), task.overrides);
  const bool fresh = instance.task_ids.insert(task.id).second;
  COTENANT_ASSERT(fresh);
  instance.used_cpu_units += need.cpu_units;
  instance.used_memory_mib += need.memory_mib;
  hold_ports(state, task);

  // The task's containers say which GPUs; several sharing containers name the same one.
  std::set<std::string> uuids;
  for (const TaskContainer& container : task.containers) {
    uuids.insert(container.gpu_uuids.begin(), container.gpu_uuids.end());
  }
  for (const std::string& uuid : uuids) {
    const auto gpu = instance.gpus.find(uuid);
    COTENANT_ASSERT(gpu.has_value());
    if (need.gpu.is_shared()) {
      instance.gpus.reserve_share(*gpu, task.id, need.gpu.shared_memory_mib,
                                  need.gpu.shared_containers);
    } else {
      instance.gpus.reserve_whole(*gpu, task.id);
    }
  }
  instance_changed(state, instance);
}

void release(State& state, const Task& task) {
  Instance& instance = state.instances.at(task.instance_id);
  const TaskNeed need = task_need(*definition_of(state, task), task.overrides);
  const std::size_t erased = instance.task_ids.erase(task.id);
  COTENANT_ASSERT(erased == 1);
  instance.used_cpu_units -= need.cpu_units;
  instance.used_memory_mib -= need.memory_mib;
  instance.ports.release(task.id);
  instance.gpus.release(task.id);
  instance_changed(state, instance);
}

TaskCounts count_tasks(const State& state, const Instance& instance) {
  TaskCounts counts;
  for (const std::string& task_id : instance.task_ids) {
    const TaskStatus status = state.tasks.at(task_id).last_status;
    if (status == TaskStatus::kPending) ++counts.pending;
    if (status == TaskStatus::kRunning) ++counts.running;
  }
  return counts;
}

}  // namespace cotenant::core
