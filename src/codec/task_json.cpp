#include "codec/task_json.h"

#include "codec/gpu_rules.h"

namespace cotenant::codec {

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

Json encode_gpu_request(const core::GpuRequest& request) {
  Json requirements = Json::array();
  Json requirement = Json::object({{"type", "GPU"}});
  if (const auto* whole = std::get_if<core::WholeGpus>(&request)) {
    requirement.set("value", whole->all ? std::string("ALL") : std::to_string(whole->count));
    requirements.push(std::move(requirement));
  } else if (const auto* shared = std::get_if<core::SharedGpu>(&request)) {
    Json allocation = Json::object({{"memory", shared->memory_mib}});
    if (shared->compute_percent) allocation.set("maxComputePercent", *shared->compute_percent);
    requirement.set("sharingStrategy", Json::object({{"nvidiaMps", std::move(allocation)}}));
    requirements.push(std::move(requirement));
  }
  return requirements;
}

Json encode_tags(const core::Tags& tags) {
  Json array = Json::array();
  for (const auto& [key, value] : tags) {
    array.push(Json::object({{"key", key}, {"value", value}}));
  }
  return array;
}

Json encode_overrides(const std::vector<core::ContainerOverride>& overrides) {
  Json array = Json::array();
  for (const core::ContainerOverride& entry : overrides) {
    Json json = Json::object();
    json.set("name", entry.name);
    if (entry.command) json.set("command", encode_strings(*entry.command));
    if (!entry.environment.empty()) json.set("environment", encode_environment(entry.environment));
    if (entry.environment_files) {
      Json files = Json::array();
      for (const std::string& file : *entry.environment_files) {
        files.push(Json::object({{"value", file}, {"type", "s3"}}));  // the only type that ECS has
      }
      json.set("environmentFiles", std::move(files));
    }
    if (entry.cpu_units) json.set("cpu", *entry.cpu_units);
    if (entry.memory_mib) json.set("memory", *entry.memory_mib);
    if (entry.memory_reservation_mib) json.set("memoryReservation", *entry.memory_reservation_mib);
    if (entry.gpu) json.set("resourceRequirements", encode_gpu_request(*entry.gpu));
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
      return base::fail(base::ErrorCode::kProtocol, "containerOverrides: a name is missing");
    if (item.find("command") != nullptr)
      entry.command = decode_strings(item.array_or_empty("command"));
    entry.environment = decode_environment(item.array_or_empty("environment"));
    if (item.find("environmentFiles") != nullptr) {
      entry.environment_files.emplace();
      for (const Json& file : item.array_or_empty("environmentFiles")) {
        entry.environment_files->push_back(file.string_or("value", ""));
      }
    }
    const auto number = [&](std::string_view name) -> std::optional<std::int64_t> {
      const Json* member = item.find(name);
      if (member == nullptr || !member->is_integer()) return std::nullopt;
      return member->as_integer();
    };
    entry.cpu_units = number("cpu");
    entry.memory_mib = number("memory");
    entry.memory_reservation_mib = number("memoryReservation");
    if (const Json* requirements = item.find("resourceRequirements");
        requirements != nullptr && requirements->is_array()) {
      auto gpu = decode_gpu_request(*requirements, "containerOverrides.resourceRequirements");
      if (!gpu) return base::fail(base::ErrorCode::kProtocol, gpu.error().message);
      entry.gpu = *gpu;
    }
    overrides.push_back(std::move(entry));
  }
  return overrides;
}

}  // namespace cotenant::codec
