#include "codec/task_json.h"

#include <fmt/format.h>

#include <set>

#include "base/ids.h"
#include "base/limits.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

base::Result<core::GpuDevice> decode_gpu(const Json& json, std::size_t index) {
  const auto wrong = [&](std::string_view member, std::string_view text) {
    return fail(ErrorCode::kProtocol, fmt::format("gpus[{}].{}: {}", index, member, text));
  };
  core::GpuDevice gpu;
  gpu.uuid = json.string_or("uuid", "");
  gpu.model = json.string_or("model", "");
  const std::int64_t client_slots = json.integer_or("clientSlots", 0);
  if (gpu.uuid.empty()) return wrong("uuid", "is required");
  if (client_slots < 0 || client_slots > base::limits::kClientSlotsMax) {
    return wrong("clientSlots", "is out of range");
  }
  gpu.client_slots = static_cast<int>(client_slots);
  if (const Json* memory = json.find("memoryMiB")) {
    if (!memory->is_integer() || memory->as_integer() < 1 ||
        memory->as_integer() > base::limits::kGpuMemoryMibMax) {
      return wrong("memoryMiB", "is out of range");
    }
    gpu.memory_mib = memory->as_integer();
  }
  return gpu;
}

}  // namespace

Json encode_strings(const std::vector<std::string>& strings) {
  Json array = Json::array();
  for (const std::string& text : strings) array.push(text);
  return array;
}

std::vector<std::string> decode_strings(const Json::Array& array) {
  std::vector<std::string> strings;
  for (const Json& item : array) {
    if (item.is_string()) strings.push_back(item.as_string());
  }
  return strings;
}

Json encode_environment(const std::vector<core::EnvironmentVariable>& environment) {
  Json array = Json::array();
  for (const core::EnvironmentVariable& variable : environment) {
    array.push(Json::object({{"name", variable.name}, {"value", variable.value}}));
  }
  return array;
}

std::vector<core::EnvironmentVariable> decode_environment(const Json::Array& array) {
  std::vector<core::EnvironmentVariable> environment;
  for (const Json& item : array) {
    environment.push_back({item.string_or("name", ""), item.string_or("value", "")});
  }
  return environment;
}

Json encode_overrides(const std::vector<core::ContainerOverride>& overrides) {
  Json array = Json::array();
  for (const core::ContainerOverride& entry : overrides) {
    Json json = Json::object();
    json.set("name", entry.name);
    if (entry.command) json.set("command", encode_strings(*entry.command));
    if (!entry.environment.empty()) json.set("environment", encode_environment(entry.environment));
    array.push(std::move(json));
  }
  return array;
}

base::Result<std::vector<core::ContainerOverride>> decode_overrides(const Json::Array& array) {
  std::vector<core::ContainerOverride> overrides;
  for (const Json& item : array) {
    core::ContainerOverride entry;
    entry.name = item.string_or("name", "");
    if (entry.name.empty())
      return fail(ErrorCode::kProtocol, "containerOverrides: a name is missing");
    if (item.find("command") != nullptr)
      entry.command = decode_strings(item.array_or_empty("command"));
    entry.environment = decode_environment(item.array_or_empty("environment"));
    overrides.push_back(std::move(entry));
  }
  return overrides;
}

Json encode_registration(const core::InstanceRegistration& registration) {
  Json ports = Json::array();
  for (const int port : registration.reserved_ports) ports.push(port);
  Json gpus = Json::array();
  for (const core::GpuDevice& gpu : registration.gpus) {
    Json json = Json::object();
    json.set("uuid", gpu.uuid).set("model", gpu.model).set("clientSlots", gpu.client_slots);
    if (gpu.memory_mib) json.set("memoryMiB", *gpu.memory_mib);
    gpus.push(std::move(json));
  }
  Json attributes = Json::object();
  for (const auto& [name, value] : registration.attributes) attributes.set(name, value);
  Json json = Json::object();
  json.set("id", registration.id)
      .set("cluster", registration.cluster)
      .set("cpuUnits", registration.cpu_units)
      .set("memoryMiB", registration.memory_mib)
      .set("reservedPorts", std::move(ports))
      .set("gpus", std::move(gpus))
      .set("attributes", std::move(attributes))
      .set("agentVersion", registration.agent_version)
      .set("engineVersion", registration.engine_version)
      .set("driverVersion", registration.driver_version)
      .set("gpuSimulated", registration.gpu_simulated);
  return json;
}

base::Result<core::InstanceRegistration> decode_registration(const Json& json) {
  const auto wrong = [](std::string_view member, std::string_view text) {
    return fail(ErrorCode::kProtocol, fmt::format("{}: {}", member, text));
  };
  core::InstanceRegistration registration;
  registration.id = json.string_or("id", "");
  registration.cluster = json.string_or("cluster", "");
  registration.cpu_units = json.integer_or("cpuUnits", -1);
  registration.memory_mib = json.integer_or("memoryMiB", -1);
  registration.agent_version = json.string_or("agentVersion", "");
  registration.engine_version = json.string_or("engineVersion", "");
  registration.driver_version = json.string_or("driverVersion", "");
  registration.gpu_simulated = json.bool_or("gpuSimulated", false);
  if (!base::is_ecs_name(registration.id)) return wrong("id", "must be an instance id");
  if (!base::is_ecs_name(registration.cluster)) return wrong("cluster", "must be a cluster's name");
  if (registration.cpu_units < 0) return wrong("cpuUnits", "is required");
  if (registration.memory_mib < 0) return wrong("memoryMiB", "is required");
  for (const Json& port : json.array_or_empty("reservedPorts")) {
    if (!port.is_integer() || port.as_integer() < 1 || port.as_integer() > 65535) {
      return wrong("reservedPorts", "must be port numbers");
    }
    registration.reserved_ports.push_back(static_cast<int>(port.as_integer()));
  }
  const Json::Array& gpus = json.array_or_empty("gpus");
  if (gpus.size() > base::limits::kGpusPerInstance) {
    return wrong("gpus", fmt::format("has {} GPUs, more than {}", gpus.size(),
                                     base::limits::kGpusPerInstance));
  }
  std::set<std::string> uuids;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    auto gpu = decode_gpu(gpus[i], i);
    if (!gpu) return fail(gpu.error());
    if (!uuids.insert(gpu->uuid).second) return wrong("gpus", "names a GPU twice: " + gpu->uuid);
    registration.gpus.push_back(std::move(*gpu));
  }
  if (const Json* attributes = json.find("attributes"); attributes && attributes->is_object()) {
    for (const Json::Member& attribute : attributes->as_object()) {
      registration.attributes[attribute.name] = attributes->string_or(attribute.name, "");
    }
  }
  return registration;
}

}  // namespace cotenant::codec
