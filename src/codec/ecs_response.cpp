#include "codec/ecs_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "codec/settings_json.h"
#include "codec/task_json.h"
#include "core/container_override.h"

namespace cotenant::codec {
namespace {

// ECS: seconds since the epoch, with a fraction.
Json timestamp(base::TimeMs time_ms) {
  return Json(static_cast<double>(time_ms) / 1000.0);
}

void set_timestamp(Json& json, std::string_view member, base::TimeMs time_ms) {
  if (time_ms != 0) json.set(member, timestamp(time_ms));
}

Json integer_resource(std::string_view name, std::int64_t value) {
  return Json::object({{"name", name},
                       {"type", "INTEGER"},
                       {"doubleValue", 0.0},
                       {"longValue", 0},
                       {"integerValue", value}});
}

Json set_resource(std::string_view name, const std::vector<std::string>& values) {
  return Json::object({{"name", name},
                       {"type", "STRINGSET"},
                       {"doubleValue", 0.0},
                       {"longValue", 0},
                       {"integerValue", 0},
                       {"stringSetValue", encode_strings(values)}});
}

// ECS: what is not available any more; at the registration those that are reserved.
std::vector<std::string> port_names(const core::Instance& instance, core::Protocol protocol,
                                    bool remaining) {
  std::set<int> ports;
  if (protocol == core::Protocol::kTcp) {
    ports.insert(instance.registration.reserved_ports.begin(),
                 instance.registration.reserved_ports.end());
  }
  if (remaining) {
    const std::vector<int> taken = instance.ports.taken(protocol);
    ports.insert(taken.begin(), taken.end());
  }
  std::vector<std::string> names;
  for (const int port : ports) names.push_back(std::to_string(port));
  return names;
}

Json encode_resources(const core::Instance& instance, bool remaining, std::int64_t cpu_units,
                      std::int64_t memory_mib, const std::vector<std::string>& gpus) {
  Json resources = Json::array();
  resources.push(integer_resource("CPU", cpu_units));
  resources.push(integer_resource("MEMORY", memory_mib));
  resources.push(set_resource("PORTS", port_names(instance, core::Protocol::kTcp, remaining)));
  resources.push(set_resource("PORTS_UDP", port_names(instance, core::Protocol::kUdp, remaining)));
  resources.push(set_resource("GPU", gpus));
  return resources;
}

Json encode_gpu_devices(const core::GpuLedger& ledger) {
  Json devices = Json::array();
  for (std::size_t gpu = 0; gpu < ledger.size(); ++gpu) {
    Json device = Json::object();
    device.set("gpuId", ledger.device(gpu).uuid)
        .set("sharingMode", core::to_string(ledger.mode(gpu)))
        .set("totalMemoryInMiB", ledger.total_mib(gpu))
        .set("remainingMemoryInMiB", ledger.remaining_mib(gpu))
        .set("containerCount", ledger.container_count(gpu));
    devices.push(std::move(device));
  }
  return devices;
}

Json encode_sharing(const core::SharedGpu& shared) {
  Json allocation = Json::object();
  allocation.set("memory", shared.memory_mib);
  if (shared.compute_percent) allocation.set("maxComputePercent", *shared.compute_percent);
  return Json::object({{"nvidiaMps", std::move(allocation)}});
}

// The task's own network has one interface; its id is the task's.
Json encode_interfaces(const core::Task& task, const core::TaskContainer& container) {
  Json interfaces = Json::array();
  if (container.address.empty()) return interfaces;
  return interfaces.push(
      Json::object({{"attachmentId", task.id}, {"privateIpv4Address", container.address}}));
}

Json encode_attachments(const core::Task& task, const core::TaskDefinition& definition) {
  Json attachments = Json::array();
  if (definition.network_mode != core::NetworkMode::kAwsvpc) return attachments;
  std::string address;
  for (const core::TaskContainer& container : task.containers) {
    if (!container.address.empty()) address = container.address;
  }
  Json details = Json::array();
  if (!address.empty()) {
    details.push(Json::object({{"name", "privateIPv4Address"}, {"value", address}}));
  }
  const char* status = address.empty() ? "ATTACHING" : "ATTACHED";
  if (!core::holds_reservation(task)) status = "DELETED";
  return attachments.push(Json::object({{"id", task.id},
                                        {"type", "ElasticNetworkInterface"},
                                        {"status", status},
                                        {"details", std::move(details)}}));
}

Json encode_container(const base::ArnFormat& arns, const core::Task& task,
                      const core::TaskContainer& container,
                      const core::ContainerDefinition& definition) {
  Json json = Json::object();
  json.set("containerArn", arns.container(task.cluster, task.id, container.id))
      .set("taskArn", arns.task(task.cluster, task.id))
      .set("name", container.name)
      .set("image", definition.image)
      .set("lastStatus", core::to_string(container.status));
  if (!container.image_digest.empty()) json.set("imageDigest", container.image_digest);
  if (!container.runtime_id.empty()) json.set("runtimeId", container.runtime_id);
  if (container.exit_code) json.set("exitCode", *container.exit_code);
  if (!container.reason.empty()) json.set("reason", container.reason);
  json.set("networkBindings", encode_bindings(container.bindings))
      .set("networkInterfaces", encode_interfaces(task, container))
      .set("healthStatus", core::to_string(container.health))
      .set("cpu", std::to_string(definition.cpu_units));
  if (definition.memory_mib) json.set("memory", std::to_string(*definition.memory_mib));
  if (definition.memory_reservation_mib) {
    json.set("memoryReservation", std::to_string(*definition.memory_reservation_mib));
  }
  if (!container.gpu_uuids.empty()) json.set("gpuIds", encode_strings(container.gpu_uuids));
  if (const auto* shared = std::get_if<core::SharedGpu>(&definition.gpu)) {
    json.set("gpuSharingStrategy", encode_sharing(*shared));
  }
  return json;
}

// ECS API reference, Cluster.statistics: name and value, both text.
Json encode_statistics(const ClusterCounts& counts) {
  const std::pair<std::string_view, int> rows[] = {
      {"runningEC2TasksCount", counts.running},
      {"pendingEC2TasksCount", counts.pending},
      {"runningFargateTasksCount", 0},
      {"pendingFargateTasksCount", 0},
      {"runningExternalTasksCount", 0},
      {"pendingExternalTasksCount", 0},
      {"activeEC2ServiceCount", 0},
      {"drainingEC2ServiceCount", 0},
      {"activeFargateServiceCount", 0},
      {"drainingFargateServiceCount", 0},
      {"activeExternalServiceCount", 0},
      {"drainingExternalServiceCount", 0},
  };
  Json statistics = Json::array();
  for (const auto& [name, value] : rows) {
    statistics.push(Json::object({{"name", name}, {"value", std::to_string(value)}}));
  }
  return statistics;
}

bool wants_sharing(const core::TaskDefinition& definition) {
  return core::task_need(definition).gpu.is_shared();
}

}  // namespace

Json encode_cluster(const base::ArnFormat& arns, const core::Cluster& cluster,
                    const ClusterCounts& counts, const Included& included) {
  Json settings = Json::array();
  for (const auto& [name, value] : cluster.settings) {
    settings.push(Json::object({{"name", name}, {"value", value}}));
  }
  Json json = Json::object();
  json.set("clusterArn", arns.cluster(cluster.name))
      .set("clusterName", cluster.name)
      .set("status", cluster.active() ? "ACTIVE" : "INACTIVE")
      .set("registeredContainerInstancesCount", counts.instances)
      .set("runningTasksCount", counts.running)
      .set("pendingTasksCount", counts.pending)
      .set("activeServicesCount", 0)
      .set("statistics", included.statistics ? encode_statistics(counts) : Json::array())
      .set("tags", included.tags ? encode_tags(cluster.tags) : Json::array())
      .set("settings", std::move(settings))
      .set("capacityProviders", Json::array())
      .set("defaultCapacityProviderStrategy", Json::array());
  return json;
}

Json encode_task_definition(const base::ArnFormat& arns, const core::TaskDefinition& definition) {
  auto document = Json::parse(definition.document);
  Json json = document ? std::move(*document) : Json::object();
  std::erase_if(json.as_object(), [](const Json::Member& member) { return member.name == "tags"; });
  Json attributes = Json::array();
  if (wants_sharing(definition)) {
    attributes.push(Json::object({{"name", core::kSharingAttribute}}));
  }
  json.set("taskDefinitionArn", arns.task_definition(definition.family, definition.revision))
      .set("revision", definition.revision)
      .set("status", core::to_string(definition.status))
      .set("requiresAttributes", std::move(attributes))
      .set("compatibilities", Json::array().push("EC2"))
      .set("registeredAt", timestamp(definition.registered_at_ms));
  set_timestamp(json, "deregisteredAt", definition.deregistered_at_ms);
  set_timestamp(json, "deleteRequestedAt", definition.delete_requested_at_ms);
  return json;
}

Json encode_task(const base::ArnFormat& arns, const core::Task& task,
                 const core::TaskDefinition& definition, const Included& included) {
  const core::TaskNeed need = core::task_need(definition, task.overrides);
  Json containers = Json::array();
  for (const core::TaskContainer& container : task.containers) {
    const core::ContainerDefinition* part = core::find_container(definition, container.name);
    if (part == nullptr) continue;
    if (core::find_override(task.overrides, container.name) == nullptr) {
      containers.push(encode_container(arns, task, container, *part));
    } else {
      containers.push(
          encode_container(arns, task, container, core::with_override(*part, task.overrides)));
    }
  }
  Json json = Json::object();
  json.set("attachments", encode_attachments(task, definition))
      .set("attributes", Json::array())
      .set("clusterArn", arns.cluster(task.cluster))
      .set("containerInstanceArn", arns.container_instance(task.cluster, task.instance_id))
      .set("containers", std::move(containers))
      .set("cpu", std::to_string(need.cpu_units))
      .set("memory", std::to_string(need.memory_mib))
      .set("createdAt", timestamp(task.created_at_ms))
      .set("desiredStatus", core::to_string(task.desired_status))
      .set("enableExecuteCommand", false)
      .set("group", task.group)
      .set("healthStatus", core::to_string(core::task_health(task, definition)))
      .set("lastStatus", core::to_string(task.last_status))
      .set("launchType", "EC2")
      .set("overrides", Json::object({{"containerOverrides", encode_overrides(task.overrides)},
                                      {"inferenceAcceleratorOverrides", Json::array()}}))
      .set("tags", included.tags ? encode_tags(task.tags) : Json::array())
      .set("taskArn", arns.task(task.cluster, task.id))
      .set("taskDefinitionArn", arns.task_definition(task.family, task.revision))
      .set("version", task.version);
  if (!task.started_by.empty()) json.set("startedBy", task.started_by);
  if (task.stop_code != core::StopCode::kNone) {
    json.set("stopCode", core::to_string(task.stop_code));
    json.set("stoppedReason", task.stopped_reason);
  }
  set_timestamp(json, "pullStartedAt", task.pull_started_at_ms);
  set_timestamp(json, "pullStoppedAt", task.pull_stopped_at_ms);
  set_timestamp(json, "startedAt", task.started_at_ms);
  set_timestamp(json, "stoppingAt", task.stopping_at_ms);
  set_timestamp(json, "executionStoppedAt", task.execution_stopped_at_ms);
  set_timestamp(json, "stoppedAt", task.stopped_at_ms);
  return json;
}

Json encode_instance(const base::ArnFormat& arns, const core::Instance& instance,
                     const core::TaskCounts& counts, const Included& included) {
  const core::InstanceRegistration& registration = instance.registration;
  std::vector<std::string> all_gpus;
  std::vector<std::string> idle_gpus;
  for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
    all_gpus.push_back(instance.gpus.device(gpu).uuid);
    if (!instance.gpus.refuses_whole(gpu)) idle_gpus.push_back(all_gpus.back());
  }
  Json attributes = Json::array();
  for (const auto& [name, value] : instance.all_attributes()) {
    attributes.push(encode_attribute(name, value));
  }
  Json json = Json::object();
  json.set("containerInstanceArn", arns.container_instance(registration.cluster, registration.id))
      .set("version", instance.version)
      .set("versionInfo", Json::object({{"agentVersion", registration.agent_version},
                                        {"dockerVersion", registration.engine_version}}))
      .set("remainingResources", encode_resources(instance, true, instance.free_cpu_units(),
                                                  instance.free_memory_mib(), idle_gpus))
      .set("registeredResources", encode_resources(instance, false, registration.cpu_units,
                                                   registration.memory_mib, all_gpus))
      .set("status", core::to_string(instance.status))
      .set("agentConnected", instance.agent_connected)
      .set("runningTasksCount", counts.running)
      .set("pendingTasksCount", counts.pending)
      .set("attributes", std::move(attributes))
      .set("registeredAt", timestamp(instance.registered_at_ms))
      .set("attachments", Json::array())
      .set("tags", included.tags ? encode_tags(instance.tags) : Json::array());
  // ECS: present only on instances that support GPU sharing.
  if (registration.attributes.count(std::string(core::kSharingAttribute)) > 0) {
    json.set("gpuDevices", encode_gpu_devices(instance.gpus));
  }
  return json;
}

Json encode_attribute(const std::string& name, const std::string& value) {
  Json json = Json::object({{"name", name}});
  if (!value.empty()) json.set("value", value);
  return json;
}

Json encode_failure(const std::string& arn, const std::string& reason, const std::string& detail) {
  Json json = Json::object();
  if (!arn.empty()) json.set("arn", arn);
  json.set("reason", reason);
  if (!detail.empty()) json.set("detail", detail);
  return json;
}

std::string encode_error(const base::Error& error) {
  return Json::object({{"__type", base::error_name(error.code)}, {"message", error.message}})
      .dump();
}

}  // namespace cotenant::codec
