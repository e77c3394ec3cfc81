#include "codec/task_json.h"

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
      return base::fail(base::ErrorCode::kProtocol, "containerOverrides: a name is missing");
    if (item.find("command") != nullptr)
      entry.command = decode_strings(item.array_or_empty("command"));
    entry.environment = decode_environment(item.array_or_empty("environment"));
    overrides.push_back(std::move(entry));
  }
  return overrides;
}

}  // namespace cotenant::codec
