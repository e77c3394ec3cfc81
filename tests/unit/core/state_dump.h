// State as text, member by member, so that two states can be compared and a difference can be read.
// A member that is added to State or to a record belongs here too.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/effect.h"
#include "core/state.h"

namespace cotenant::core::test {

class Dump {
 public:
  Dump& add(std::string_view text) {
    out_.append(text);
    out_.push_back(' ');
    return *this;
  }
  Dump& add(const std::string& text) { return add(std::string_view(text)); }
  Dump& add(const char* text) { return add(std::string_view(text)); }
  Dump& add(std::int64_t number) { return add(std::to_string(number)); }
  Dump& add(int number) { return add(std::to_string(number)); }
  Dump& add(bool flag) { return add(flag ? "yes" : "no"); }
  template <class T>
  Dump& add(const std::optional<T>& value) {
    return value ? add(*value) : add("-");
  }
  template <class Range>
  Dump& list(const Range& range) {
    out_.append("[ ");
    for (const auto& item : range) add(item);
    return add("]");
  }
  Dump& line() {
    out_.back() = '\n';
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

inline void dump_failures(Dump& dump, const std::vector<TaskFailure>& failures) {
  for (const TaskFailure& failure : failures) {
    dump.add("failure").add(failure.instance_id).add(failure.reason).add(failure.detail);
  }
}

inline void dump_tags(Dump& dump, const Tags& tags) {
  for (const auto& [key, value] : tags) dump.add("tag").add(key).add(value);
}

inline std::string dump(const Cluster& cluster) {
  Dump dump;
  dump.add("cluster").add(cluster.name).add(cluster.created_at_ms).add(cluster.deleted_at_ms);
  dump_tags(dump, cluster.tags);
  for (const auto& [name, value] : cluster.settings) dump.add(name).add(value);
  return dump.line().take();
}

inline void dump_gpu(Dump& dump, const GpuRequest& request) {
  if (const auto* shared = std::get_if<SharedGpu>(&request)) {
    dump.add("share").add(shared->memory_mib).add(shared->compute_percent);
  } else if (const auto* whole = std::get_if<WholeGpus>(&request)) {
    dump.add("whole").add(whole->count).add(whole->all);
  }
}

inline std::string dump(const TaskDefinition& definition) {
  Dump dump;
  dump.add("definition").add(definition.family).add(definition.revision);
  dump.add(definition.registered_at_ms).add(to_string(definition.network_mode));
  dump.add(definition.document).list(definition.warnings).add(to_string(definition.status));
  dump.add(definition.deregistered_at_ms).add(definition.delete_requested_at_ms);
  dump_tags(dump, definition.tags);
  for (const ContainerDefinition& part : definition.containers) {
    dump.add("container").add(part.name).add(part.image).add(part.cpu_units).add(part.memory_mib);
    dump.add(part.memory_reservation_mib).add(part.essential).list(part.entry_point);
    dump.list(part.command).add(part.working_directory).add(part.stop_timeout_s);
    for (const auto& variable : part.environment) dump.add(variable.name).add(variable.value);
    for (const auto& [name, value] : part.docker_labels) dump.add(name).add(value);
    dump_gpu(dump, part.gpu);
  }
  return dump.line().take();
}

inline std::string dump(const Task& task) {
  Dump dump;
  dump.add("task").add(task.id).add(task.cluster).add(task.instance_id).add(task.family);
  dump.add(task.revision).add(task.group).add(task.started_by).add(to_string(task.last_status));
  dump.add(to_string(task.desired_status)).add(to_string(task.stop_code)).add(task.stopped_reason);
  dump.add(task.version).add(task.created_at_ms).add(task.started_at_ms).add(task.stopping_at_ms);
  dump.add(task.execution_stopped_at_ms).add(task.stopped_at_ms);
  for (const ContainerOverride& entry : task.overrides) {
    dump.add("override").add(entry.name).add(entry.command.has_value());
    if (entry.command) dump.list(*entry.command);
    for (const auto& variable : entry.environment) dump.add(variable.name).add(variable.value);
    dump.add(entry.cpu_units).add(entry.memory_mib).add(entry.memory_reservation_mib);
    if (entry.gpu) dump_gpu(dump, *entry.gpu);
  }
  dump_tags(dump, task.tags);
  for (const TaskContainer& part : task.containers) {
    dump.add("container").add(part.name).add(part.id).add(to_string(part.status));
    dump.add(part.exit_code).add(part.reason).add(part.runtime_id).add(part.image_digest);
    dump.list(part.gpu_uuids);
  }
  return dump.line().take();
}

inline std::string dump(const ClientToken& token) {
  Dump dump;
  dump.add("token").add(token.key).add(token.parameters).add(token.created_at_ms);
  dump.list(token.task_ids);
  dump_failures(dump, token.failures);
  return dump.line().take();
}

// What the store keeps of an instance.
inline std::string dump_durable(const Instance& instance) {
  const InstanceRegistration& registration = instance.registration;
  Dump dump;
  dump.add("instance").add(registration.id).add(registration.cluster).add(registration.cpu_units);
  dump.add(registration.memory_mib).list(registration.reserved_ports);
  for (const GpuDevice& gpu : registration.gpus) {
    dump.add(gpu.uuid).add(gpu.model).add(gpu.memory_mib).add(gpu.client_slots);
  }
  for (const auto& [name, value] : registration.attributes) dump.add(name).add(value);
  dump.add(registration.agent_version).add(registration.engine_version);
  dump.add(registration.driver_version).add(registration.gpu_simulated);
  dump.add(instance.number).add(to_string(instance.status)).add(instance.registered_at_ms);
  dump.add(instance.deregistered_at_ms);
  dump_tags(dump, instance.tags);
  return dump.add(instance.version).line().take();
}

// What is derived from the tasks.
inline std::string dump_reservations(const Instance& instance) {
  Dump dump;
  dump.add("reserved").add(instance.registration.id).add(instance.used_cpu_units);
  dump.add(instance.used_memory_mib).list(instance.task_ids);
  for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
    dump.add(instance.gpus.device(gpu).uuid).add(to_string(instance.gpus.mode(gpu)));
    dump.add(instance.gpus.remaining_mib(gpu)).add(instance.gpus.container_count(gpu));
    dump.list(instance.gpus.task_ids(gpu));
  }
  return dump.line().take();
}

inline std::string dump_connection(const Instance& instance) {
  return Dump()
      .add("connection")
      .add(instance.registration.id)
      .add(instance.agent_connected)
      .add(instance.connection_epoch)
      .line()
      .take();
}

inline std::string dump(const Workload::Shape& shape) {
  Dump dump;
  dump.add("shape").add(shape.shape.cpu_milli).add(shape.shape.share_mib);
  dump.add(shape.shape.whole_gpus).add(shape.shape.models).add(shape.count);
  return dump.line().take();
}

inline std::string dump(const Workload& workload) {
  const Workload::Counters& counters = workload.counters();
  Dump dump;
  dump.add("workload").add(counters.seen).add(counters.next_training).add(counters.trainings);
  dump.add(counters.halvings).add(counters.turnover).add(counters.window_arrived);
  dump.add(counters.window_placed).add(counters.window_left);
  const TrainingSet set = workload.training_set();
  dump.add("trained").add(set.turnover).add(set.fleet_cpu_milli).add(set.fleet_gpus);
  for (const auto& [name, gpus] : set.class_gpus) dump.add(name).add(gpus);
  for (const CountedShape& shape : set.shapes) dump.add(shape.count);
  return dump.line().take();
}

// Every durable record by its name.
inline std::map<RecordRef, std::string> dump_records(const State& state) {
  std::map<RecordRef, std::string> records;
  for (const auto& [name, cluster] : state.clusters) {
    records[{RecordKind::kCluster, name}] = dump(cluster);
  }
  for (const auto& [family, entry] : state.families) {
    for (const auto& [revision, definition] : entry.revisions) {
      records[{RecordKind::kTaskDefinition, family, revision}] = dump(*definition);
    }
  }
  for (const auto& [id, instance] : state.instances) {
    records[{RecordKind::kInstance, id}] = dump_durable(instance);
  }
  for (const auto& [family, entry] : state.families) {
    if (entry.last_deleted_revision == 0) continue;
    records[{RecordKind::kTaskDefinitionFamily, family}] =
        Dump().add("family").add(family).add(entry.last_deleted_revision).line().take();
  }
  for (const auto& [key, setting] : state.account_settings) {
    Dump dump;
    dump.add("setting").add(setting.name).add(setting.principal_arn).add(setting.value);
    records[{RecordKind::kAccountSetting, setting.name + "/" + setting.principal_arn}] =
        dump.line().take();
  }
  for (const auto& [id, task] : state.tasks) records[{RecordKind::kTask, id}] = dump(task);
  for (const auto& [key, token] : state.client_tokens) {
    records[{RecordKind::kClientToken, key}] = dump(token);
  }
  for (const auto& [cluster, workload] : state.workloads) {
    records[{RecordKind::kWorkload, cluster}] = dump(workload);
    for (std::size_t i = 0; i < workload.shapes().size(); ++i) {
      records[{RecordKind::kWorkloadShape, cluster, static_cast<std::int64_t>(i)}] =
          dump(workload.shapes()[i]);
    }
  }
  return records;
}

inline std::string dump_reservations(const State& state) {
  std::string text;
  for (const auto& [id, instance] : state.instances) text += dump_reservations(instance);
  return text;
}

inline std::string dump(const State& state) {
  std::string text = "next instance number " + std::to_string(state.next_instance_number) + "\n";
  for (const auto& [ref, record] : dump_records(state)) text += record;
  for (const auto& [id, instance] : state.instances) text += dump_connection(instance);
  return text + dump_reservations(state);
}

}  // namespace cotenant::core::test
