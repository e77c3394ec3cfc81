#include "codec/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codec/json.h"
#include "codec/json_members.h"
#include "codec/registration_json.h"
#include "codec/settings_json.h"
#include "codec/task_definition_reader.h"
#include "codec/task_json.h"
#include "codec/workload_record.h"
#include "core/container_override.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

// With no members where the map is empty: it was written, and there are none.
Json encode_map(const std::map<std::string, std::string>& values) {
  Json object = Json::object();
  for (const auto& [key, value] : values) object.set(key, value);
  return object;
}

// Tags, or attributes.
std::map<std::string, std::string> decode_map(const Json& json, std::string_view member) {
  std::map<std::string, std::string> values;
  const Json* object = json.find(member);
  if (object == nullptr || !object->is_object()) return values;
  for (const Json::Member& entry : object->as_object()) {
    if (entry.value.is_string()) values[entry.name] = entry.value.as_string();
  }
  return values;
}

Json versioned() {
  return Json::object({{"v", kRecordSchemaVersion}});
}

Json encode_cluster(const core::Cluster& cluster) {
  Json json = versioned();
  json.set("name", cluster.name).set("createdAt", cluster.created_at_ms);
  set_number(json, "deletedAt", cluster.deleted_at_ms);
  set_map(json, "tags", cluster.tags);
  set_map(json, "settings", cluster.settings);
  return json;
}

Json encode_definition(const core::TaskDefinition& definition) {
  Json json = versioned();
  json.set("family", definition.family)
      .set("revision", definition.revision)
      .set("registeredAt", definition.registered_at_ms)
      .set("document", definition.document)
      .set("status", core::to_string(definition.status));
  set_number(json, "deregisteredAt", definition.deregistered_at_ms);
  set_number(json, "deleteRequestedAt", definition.delete_requested_at_ms);
  json.set("tags", encode_map(definition.tags));
  return json;
}

Json encode_instance(const core::Instance& instance) {
  Json json = versioned();
  json.set("registration", encode_registration(instance.registration))
      .set("number", instance.number)
      .set("status", core::to_string(instance.status))
      .set("registeredAt", instance.registered_at_ms)
      .set("version", instance.version);
  set_number(json, "deregisteredAt", instance.deregistered_at_ms);
  set_map(json, "tags", instance.tags);
  set_map(json, "customAttributes", instance.custom_attributes);
  return json;
}

Json encode_task(const core::Task& task) {
  Json containers = Json::array();
  for (const core::TaskContainer& container : task.containers) {
    Json json = Json::object();
    json.set("name", container.name)
        .set("id", container.id)
        .set("status", core::to_string(container.status));
    if (container.exit_code) json.set("exitCode", *container.exit_code);
    json.set("reason", container.reason)
        .set("runtimeId", container.runtime_id)
        .set("imageDigest", container.image_digest)
        .set("gpus", encode_strings(container.gpu_uuids));
    if (container.health != core::HealthStatus::kUnknown) {
      json.set("health", core::to_string(container.health));
    }
    if (!container.bindings.empty()) json.set("bindings", encode_bindings(container.bindings));
    if (!container.address.empty()) json.set("address", container.address);
    containers.push(std::move(json));
  }
  Json json = versioned();
  json.set("id", task.id)
      .set("cluster", task.cluster)
      .set("instance", task.instance_id)
      .set("family", task.family)
      .set("revision", task.revision)
      .set("group", task.group)
      .set("startedBy", task.started_by)
      .set("overrides", encode_overrides(task.overrides))
      .set("containers", std::move(containers))
      .set("lastStatus", core::to_string(task.last_status))
      .set("desiredStatus", core::to_string(task.desired_status))
      .set("stopCode", core::to_string(task.stop_code))
      .set("stoppedReason", task.stopped_reason)
      .set("version", task.version)
      .set("createdAt", task.created_at_ms)
      .set("pullStartedAt", task.pull_started_at_ms)
      .set("pullStoppedAt", task.pull_stopped_at_ms)
      .set("startedAt", task.started_at_ms)
      .set("stoppingAt", task.stopping_at_ms)
      .set("executionStoppedAt", task.execution_stopped_at_ms)
      .set("stoppedAt", task.stopped_at_ms);
  set_map(json, "tags", task.tags);
  return json;
}

Json encode_token(const core::ClientToken& token) {
  Json failures = Json::array();
  for (const core::TaskFailure& failure : token.failures) {
    failures.push(Json::object({{"instance", failure.instance_id},
                                {"reason", failure.reason},
                                {"detail", failure.detail}}));
  }
  Json json = versioned();
  json.set("key", token.key)
      .set("parameters", token.parameters)
      .set("createdAt", token.created_at_ms)
      .set("tasks", encode_strings(token.task_ids))
      .set("failures", std::move(failures));
  return json;
}

// Reads a word of one of the core's ladders; an unknown one makes the record unreadable.
template <class Enum>
base::Status read_word(const Json& json, std::string_view member,
                       std::optional<Enum> (*parse)(std::string_view), Enum& out) {
  const std::string text = json.string_or(member, "");
  const auto value = parse(text);
  if (!value) return fail(ErrorCode::kProtocol, fmt::format("{}: unknown word '{}'", member, text));
  out = *value;
  return {};
}

// Each decode_*() puts one record into the state and returns the name that the record gives itself.
using NamedRecord = base::Result<core::RecordRef>;

NamedRecord decode_cluster(const Json& json, core::State& state) {
  const std::string name = json.string_or("name", "");
  core::Cluster cluster;
  cluster.name = name;
  cluster.created_at_ms = json.integer_or("createdAt", 0);
  cluster.deleted_at_ms = json.integer_or("deletedAt", 0);
  cluster.tags = decode_map(json, "tags");
  cluster.settings = decode_map(json, "settings");
  const std::string_view policy = core::placement_policy(cluster);
  if (!core::is_placement_policy(policy)) {
    return fail(ErrorCode::kProtocol, fmt::format("settings: no placement policy '{}'", policy));
  }
  state.clusters[name] = std::move(cluster);
  return core::RecordRef{core::RecordKind::kCluster, name};
}

NamedRecord decode_definition(const Json& json, core::State& state) {
  auto read = read_stored_definition(json.string_or("document", ""));
  if (!read) return fail(read.error());
  auto definition = std::make_shared<core::TaskDefinition>(std::move(*read));
  definition->revision = json.integer_or("revision", 0);
  definition->registered_at_ms = json.integer_or("registeredAt", 0);
  definition->deregistered_at_ms = json.integer_or("deregisteredAt", 0);
  definition->delete_requested_at_ms = json.integer_or("deleteRequestedAt", 0);
  // Records of the first version have neither; their tags are those of the document.
  if (json.find("tags") != nullptr) definition->tags = decode_map(json, "tags");
  if (json.find("status") != nullptr) {
    auto status = read_word(json, "status", core::parse_task_definition_status, definition->status);
    if (!status) return fail(status.error());
  }
  if (definition->revision < 1) return fail(ErrorCode::kProtocol, "revision: must be at least 1");
  state.families[definition->family].revisions[definition->revision] = definition;
  return core::RecordRef{core::RecordKind::kTaskDefinition, definition->family,
                         definition->revision};
}

NamedRecord decode_instance(const Json& json, core::State& state) {
  const Json* registration = json.find("registration");
  if (registration == nullptr) return fail(ErrorCode::kProtocol, "registration: is missing");
  auto decoded = decode_registration(*registration);
  if (!decoded) return fail(decoded.error());
  core::Instance instance;
  instance.registration = std::move(*decoded);
  instance.number = json.integer_or("number", 0);
  instance.registered_at_ms = json.integer_or("registeredAt", 0);
  instance.version = json.integer_or("version", 1);
  instance.custom_attributes = decode_map(json, "customAttributes");
  if (auto status = read_word(json, "status", core::parse_instance_status, instance.status);
      !status) {
    return fail(status.error());
  }
  instance.deregistered_at_ms = json.integer_or("deregisteredAt", 0);
  instance.tags = decode_map(json, "tags");
  instance.gpus = core::GpuLedger(instance.registration.gpus);
  state.next_instance_number = std::max(state.next_instance_number, instance.number + 1);
  const std::string id = instance.registration.id;
  state.instances.emplace(id, std::move(instance));
  return core::RecordRef{core::RecordKind::kInstance, id};
}

NamedRecord decode_task(const Json& json, core::State& state) {
  core::Task task;
  task.id = json.string_or("id", "");
  task.cluster = json.string_or("cluster", "");
  task.instance_id = json.string_or("instance", "");
  task.family = json.string_or("family", "");
  task.revision = json.integer_or("revision", 0);
  task.group = json.string_or("group", "");
  task.started_by = json.string_or("startedBy", "");
  if (auto overrides = decode_overrides(json.array_or_empty("overrides"))) {
    task.overrides = std::move(*overrides);
  } else {
    return fail(overrides.error());
  }
  for (const Json& entry : json.array_or_empty("containers")) {
    core::TaskContainer container;
    container.name = entry.string_or("name", "");
    container.id = entry.string_or("id", "");
    if (const Json* code = entry.find("exitCode"); code != nullptr && code->is_integer()) {
      container.exit_code = static_cast<int>(code->as_integer());
    }
    container.reason = entry.string_or("reason", "");
    container.runtime_id = entry.string_or("runtimeId", "");
    container.image_digest = entry.string_or("imageDigest", "");
    container.gpu_uuids = decode_strings(entry.array_or_empty("gpus"));
    container.health = core::parse_health_status(entry.string_or("health", ""))
                           .value_or(core::HealthStatus::kUnknown);
    container.bindings = decode_bindings(entry.array_or_empty("bindings"));
    container.address = entry.string_or("address", "");
    if (auto status = read_word(entry, "status", core::parse_container_status, container.status);
        !status) {
      return fail(status.error());
    }
    task.containers.push_back(std::move(container));
  }
  if (auto status = read_word(json, "lastStatus", core::parse_task_status, task.last_status);
      !status) {
    return fail(status.error());
  }
  if (auto status =
          read_word(json, "desiredStatus", core::parse_desired_status, task.desired_status);
      !status) {
    return fail(status.error());
  }
  if (auto status = read_word(json, "stopCode", core::parse_stop_code, task.stop_code); !status) {
    return fail(status.error());
  }
  task.stopped_reason = json.string_or("stoppedReason", "");
  task.version = json.integer_or("version", 1);
  task.created_at_ms = json.integer_or("createdAt", 0);
  task.pull_started_at_ms = json.integer_or("pullStartedAt", 0);
  task.pull_stopped_at_ms = json.integer_or("pullStoppedAt", 0);
  task.started_at_ms = json.integer_or("startedAt", 0);
  task.stopping_at_ms = json.integer_or("stoppingAt", 0);
  task.execution_stopped_at_ms = json.integer_or("executionStoppedAt", 0);
  task.stopped_at_ms = json.integer_or("stoppedAt", 0);
  task.tags = decode_map(json, "tags");
  const std::string id = task.id;
  state.tasks.emplace(id, std::move(task));
  return core::RecordRef{core::RecordKind::kTask, id};
}

NamedRecord decode_token(const Json& json, core::State& state) {
  core::ClientToken token;
  token.key = json.string_or("key", "");
  token.parameters = json.string_or("parameters", "");
  token.created_at_ms = json.integer_or("createdAt", 0);
  token.task_ids = decode_strings(json.array_or_empty("tasks"));
  for (const Json& failure : json.array_or_empty("failures")) {
    token.failures.push_back({failure.string_or("instance", ""), failure.string_or("reason", ""),
                              failure.string_or("detail", "")});
  }
  const std::string key = token.key;
  state.client_tokens.emplace(key, std::move(token));
  return core::RecordRef{core::RecordKind::kClientToken, key};
}

NamedRecord decode_family(const Json& json, core::State& state) {
  const std::string name = json.string_or("name", "");
  state.families[name].last_deleted_revision = json.integer_or("lastDeletedRevision", 0);
  return core::RecordRef{core::RecordKind::kTaskDefinitionFamily, name};
}

NamedRecord decode_setting(const Json& json, core::State& state) {
  core::AccountSetting setting{json.string_or("name", ""), json.string_or("principal", ""),
                               json.string_or("value", "")};
  const std::string id = setting.name + "/" + setting.principal_arn;
  state.account_settings[{setting.name, setting.principal_arn}] = std::move(setting);
  return core::RecordRef{core::RecordKind::kAccountSetting, id};
}

// "workload-shape/<cluster>/<index>"; names hold no slash.
base::Status decode_workload_shape(const std::string& key, const Json& json,
                                   WorkloadRecords& workloads) {
  const std::size_t cluster_at = key.find('/') + 1;
  const std::size_t index_at = key.rfind('/') + 1;
  const std::string digits = key.substr(index_at);
  const bool number =
      digits.size() == 5 && digits.find_first_not_of("0123456789") == std::string::npos;
  if (!number || index_at <= cluster_at) {
    return fail(ErrorCode::kProtocol, "the key must end in a cluster and five digits");
  }
  return workloads.add_shape(key.substr(cluster_at, index_at - cluster_at - 1), std::stoll(digits),
                             json);
}

base::Status decode_one(const std::string& key, const Json& json, core::State& state,
                        WorkloadRecords& workloads) {
  if (json.integer_or("v", 0) > kRecordSchemaVersion || json.integer_or("v", 0) < 1) {
    return fail(ErrorCode::kProtocol,
                fmt::format("v: schema version {} is not one this cotenant reads (1 to {})",
                            json.integer_or("v", 0), kRecordSchemaVersion));
  }
  const std::string kind = key.substr(0, key.find('/'));
  NamedRecord decoded = fail(ErrorCode::kProtocol, "the key is of no known kind");
  if (kind == "workload") return workloads.add_counters(key.substr(kind.size() + 1), json);
  if (kind == "workload-shape") return decode_workload_shape(key, json, workloads);
  if (kind == "cluster") decoded = decode_cluster(json, state);
  if (kind == "taskdef") decoded = decode_definition(json, state);
  if (kind == "instance") decoded = decode_instance(json, state);
  if (kind == "task") decoded = decode_task(json, state);
  if (kind == "token") decoded = decode_token(json, state);
  if (kind == "family") decoded = decode_family(json, state);
  if (kind == "setting") decoded = decode_setting(json, state);
  if (!decoded) return fail(decoded.error());
  if (record_key(*decoded) == key) return {};
  return fail(ErrorCode::kProtocol,
              fmt::format("it calls itself {}, which is not its key", record_key(*decoded)));
}

// A task whose instance, definition or GPUs are not there cannot be accounted for.
base::Status check_references(const core::State& state, const core::Task& task) {
  const auto missing = [&](std::string_view what) {
    return fail(ErrorCode::kProtocol,
                fmt::format("record task/{}: its {} has no record", task.id, what));
  };
  const core::TaskDefinitionPtr definition =
      core::find_definition(state, task.family, task.revision);
  if (definition == nullptr) return missing("task definition");
  for (const core::TaskContainer& container : task.containers) {
    if (core::find_container(*definition, container.name) == nullptr) return missing("container");
  }
  if (!core::holds_reservation(task)) return {};
  const auto instance = state.instances.find(task.instance_id);
  if (instance == state.instances.end()) return missing("container instance");
  for (const core::TaskContainer& container : task.containers) {
    for (const std::string& uuid : container.gpu_uuids) {
      if (!instance->second.gpus.find(uuid)) return missing("GPU " + uuid);
    }
  }
  return {};
}

// reserve() asserts what is refused here: records that contradict each other must not abort.
base::Status check_room(const core::State& state, const core::Task& task) {
  const auto wrong = [&](const std::string& text) {
    return fail(ErrorCode::kProtocol, fmt::format("record task/{}: {}", task.id, text));
  };
  const core::GpuLedger& ledger = state.instances.at(task.instance_id).gpus;
  const core::TaskGpuNeed need =
      core::task_need(*core::definition_of(state, task), task.overrides).gpu;
  std::set<std::string> uuids;
  for (const core::TaskContainer& container : task.containers) {
    uuids.insert(container.gpu_uuids.begin(), container.gpu_uuids.end());
  }
  const std::size_t wanted = need.is_shared() ? 1 : static_cast<std::size_t>(need.whole_count);
  if (need.whole_all ? uuids.empty() : uuids.size() != wanted) {
    return wrong(fmt::format("it holds {} GPUs, but its task definition asks for {}", uuids.size(),
                             need.whole_all ? "ALL" : std::to_string(wanted)));
  }
  for (const std::string& uuid : uuids) {
    const std::size_t gpu = *ledger.find(uuid);
    const auto refusal =
        need.is_shared() ? ledger.refuses_share(gpu, need.shared_memory_mib, need.shared_containers)
                         : ledger.refuses_whole(gpu);
    if (refusal) return wrong(fmt::format("GPU {} has no room for it beside other tasks", uuid));
  }
  return {};
}

}  // namespace

std::string record_key(const core::RecordRef& ref) {
  switch (ref.kind) {
    case core::RecordKind::kCluster:
      return "cluster/" + ref.id;
    case core::RecordKind::kTaskDefinition:
      return fmt::format("taskdef/{}/{:010}", ref.id, ref.revision);
    case core::RecordKind::kInstance:
      return "instance/" + ref.id;
    case core::RecordKind::kTask:
      return "task/" + ref.id;
    case core::RecordKind::kClientToken:
      return "token/" + ref.id;
    case core::RecordKind::kTaskDefinitionFamily:
      return "family/" + ref.id;
    case core::RecordKind::kAccountSetting:
      return "setting/" + ref.id;
    case core::RecordKind::kWorkload:
      return "workload/" + ref.id;
    case core::RecordKind::kWorkloadShape:
      return fmt::format("workload-shape/{}/{:05}", ref.id, ref.revision);
  }
  return ref.id;
}

std::optional<std::string> encode_record(const core::State& state, const core::RecordRef& ref) {
  switch (ref.kind) {
    case core::RecordKind::kCluster: {
      const auto found = state.clusters.find(ref.id);
      if (found == state.clusters.end()) return std::nullopt;
      return encode_cluster(found->second).dump();
    }
    case core::RecordKind::kTaskDefinition: {
      const core::TaskDefinitionPtr definition = core::find_definition(state, ref.id, ref.revision);
      if (definition == nullptr) return std::nullopt;
      return encode_definition(*definition).dump();
    }
    case core::RecordKind::kInstance: {
      const auto found = state.instances.find(ref.id);
      if (found == state.instances.end()) return std::nullopt;
      return encode_instance(found->second).dump();
    }
    case core::RecordKind::kTask: {
      const auto found = state.tasks.find(ref.id);
      if (found == state.tasks.end()) return std::nullopt;
      return encode_task(found->second).dump();
    }
    case core::RecordKind::kClientToken: {
      const auto found = state.client_tokens.find(ref.id);
      if (found == state.client_tokens.end()) return std::nullopt;
      return encode_token(found->second).dump();
    }
    case core::RecordKind::kTaskDefinitionFamily: {
      const auto found = state.families.find(ref.id);
      if (found == state.families.end()) return std::nullopt;
      Json json = versioned();
      json.set("name", ref.id).set("lastDeletedRevision", found->second.last_deleted_revision);
      return json.dump();
    }
    case core::RecordKind::kAccountSetting: {
      const std::size_t slash = ref.id.find('/');
      const auto found =
          state.account_settings.find({ref.id.substr(0, slash), ref.id.substr(slash + 1)});
      if (found == state.account_settings.end()) return std::nullopt;
      Json json = versioned();
      json.set("name", found->second.name)
          .set("principal", found->second.principal_arn)
          .set("value", found->second.value);
      return json.dump();
    }
    case core::RecordKind::kWorkload:
    case core::RecordKind::kWorkloadShape: {
      const auto found = state.workloads.find(ref.id);
      if (found == state.workloads.end()) return std::nullopt;
      const auto shape = static_cast<std::size_t>(ref.revision);
      Json json = ref.kind == core::RecordKind::kWorkload
                      ? encode_workload(found->second)
                      : encode_workload_shape(found->second, shape);
      json.set("v", kRecordSchemaVersion);
      return json.dump();
    }
  }
  return std::nullopt;
}

base::Result<core::State> decode_records(const std::map<std::string, std::string>& records) {
  core::State state;
  WorkloadRecords workloads;
  for (const auto& [key, value] : records) {
    if (key.rfind("probe/", 0) == 0) continue;  // a write that only tried whether writes work
    auto json = Json::parse(value);
    if (json && !json->is_object()) json = fail(ErrorCode::kProtocol, "must be an object");
    const base::Status status =
        json ? decode_one(key, *json, state, workloads) : fail(json.error());
    if (!status) {
      return fail(ErrorCode::kProtocol, fmt::format("record {}: {}", key, status.error().message));
    }
  }
  if (auto status = workloads.restore(state); !status) return fail(status.error());
  core::rebuild_placements(state);
  for (const auto& [id, task] : state.tasks) {
    if (auto status = check_references(state, task); !status) return fail(status.error());
    if (!core::holds_reservation(task)) continue;
    if (auto status = check_room(state, task); !status) return fail(status.error());
    core::reserve(state, task);
  }
  return state;
}

}  // namespace cotenant::codec
