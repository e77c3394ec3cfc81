#include "codec/registration_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/limits.h"
#include "codec/json_members.h"

namespace cotenant::codec {
namespace {

core::GpuDevice read_gpu_device(JsonReader reader) {
  core::GpuDevice gpu;
  gpu.uuid = reader.text("uuid", true, base::limits::kNameChars);
  gpu.model = reader.text("model", false, base::limits::kNameChars);
  gpu.memory_mib = reader.number("memoryMib", false, 1, base::limits::kGpuMemoryMibMax);
  gpu.client_slots = static_cast<int>(
      reader.number("clientSlots", true, 0, base::limits::kClientSlotsMax).value_or(0));
  gpu.unavailable = reader.text("unavailable", false, base::limits::kReasonChars);
  return gpu;
}

Json gpu_device_json(const core::GpuDevice& gpu) {
  Json json = Json::object();
  json.set("uuid", gpu.uuid);
  set_text(json, "model", gpu.model);
  if (gpu.memory_mib) json.set("memoryMib", *gpu.memory_mib);
  json.set("clientSlots", gpu.client_slots);
  set_text(json, "unavailable", gpu.unavailable);
  return json;
}

}  // namespace

Json encode_registration(const core::InstanceRegistration& registration) {
  Json json = Json::object();
  json.set("id", registration.id);
  json.set("cluster", registration.cluster);
  json.set("cpuUnits", registration.cpu_units);
  json.set("memoryMib", registration.memory_mib);
  set_array(json, "reservedPorts", registration.reserved_ports);
  Json gpus = Json::array();
  for (const core::GpuDevice& gpu : registration.gpus) gpus.push(gpu_device_json(gpu));
  json.set("gpus", std::move(gpus));
  set_map(json, "attributes", registration.attributes);
  set_text(json, "agentVersion", registration.agent_version);
  set_text(json, "engineVersion", registration.engine_version);
  set_text(json, "driverVersion", registration.driver_version);
  if (registration.gpu_simulated) json.set("gpuSimulated", true);
  return json;
}

core::InstanceRegistration read_registration(JsonReader reader) {
  core::InstanceRegistration registration;
  registration.id = reader.name("id");
  registration.cluster = reader.name("cluster");
  registration.cpu_units =
      reader.number("cpuUnits", true, 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  registration.memory_mib =
      reader.number("memoryMib", true, 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
  reader.each("reservedPorts", false, 1024, [&](const Json& element, const std::string& path) {
    if (!element.is_integer() || element.as_integer() < 1 || element.as_integer() > 65535) {
      return reader.refuse(path + ": must be a port, 1..65535");
    }
    registration.reserved_ports.push_back(static_cast<int>(element.as_integer()));
  });
  reader.each(
      "gpus", true, base::limits::kGpusPerInstance,
      [&](const Json& element, const std::string& path) {
        registration.gpus.push_back(read_gpu_device(JsonReader(element, path, reader.error())));
        for (std::size_t i = 0; i + 1 < registration.gpus.size(); ++i) {
          if (registration.gpus[i].uuid != registration.gpus.back().uuid) continue;
          reader.refuse(fmt::format("{}.uuid: '{}' is there twice", path,
                                    shortened(registration.gpus[i].uuid)));
        }
      });
  registration.attributes = reader.text_map("attributes");
  if (registration.attributes.size() > base::limits::kAttributesPerInstance) {
    reader.refuse(fmt::format("{}: has {} members; at most {} are allowed", reader.at("attributes"),
                              registration.attributes.size(),
                              base::limits::kAttributesPerInstance));
  }
  for (const auto& [name, value] : registration.attributes) {
    if (std::max(name.size(), value.size()) <= base::limits::kAttributeChars) continue;
    reader.refuse(fmt::format("{}[\"{}\"]: names and values have at most {} bytes",
                              reader.at("attributes"), shortened(name),
                              base::limits::kAttributeChars));
  }
  registration.agent_version = reader.text("agentVersion", false);
  registration.engine_version = reader.text("engineVersion", false);
  registration.driver_version = reader.text("driverVersion", false);
  registration.gpu_simulated = reader.flag("gpuSimulated", false);
  return registration;
}

base::Result<core::InstanceRegistration> decode_registration(const Json& json) {
  std::optional<base::Error> error;
  core::InstanceRegistration registration = read_registration(JsonReader(json, "", error));
  if (error) return base::fail(std::move(*error));
  return registration;
}

}  // namespace cotenant::codec
