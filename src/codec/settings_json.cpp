#include "codec/settings_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "codec/json_members.h"
#include "codec/task_json.h"

namespace cotenant::codec {
namespace {

using core::ContainerDefinition;
using core::HostSettings;
using core::LifeSettings;

std::string text_of(const Json& json, std::string_view member) {
  const Json* value = json.find(member);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

bool flag_of(const Json& json, std::string_view member) {
  const Json* value = json.find(member);
  return value != nullptr && value->is_bool() && value->as_bool();
}

std::optional<std::int64_t> number_of(const Json& json, std::string_view member) {
  const Json* value = json.find(member);
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  return value->as_integer();
}

const Json& object_of(const Json& json, std::string_view member) {
  static const Json kNone = Json::object();
  const Json* value = json.find(member);
  return value != nullptr && value->is_object() ? *value : kNone;
}

std::vector<std::string> texts_of(const Json& json, std::string_view member) {
  return decode_strings(json.array_or_empty(member));
}

std::map<std::string, std::string> map_of(const Json& json, std::string_view member) {
  std::map<std::string, std::string> values;
  for (const Json::Member& entry : object_of(json, member).as_object()) {
    if (entry.value.is_string()) values[entry.name] = entry.value.as_string();
  }
  return values;
}

int port_of(const Json& json, std::string_view member) {
  const std::int64_t port = number_of(json, member).value_or(0);
  return port < 0 || port > 65535 ? 0 : static_cast<int>(port);
}

core::Protocol protocol_of(const Json& json) {
  return core::parse_protocol(text_of(json, "protocol")).value_or(core::Protocol::kTcp);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(const Json& json, std::string_view member, std::string_view first,
               std::string_view second) {
  Pairs pairs;
  for (const Json& entry : json.array_or_empty(member)) {
    pairs.emplace_back(text_of(entry, first), text_of(entry, second));
  }
  return pairs;
}

void set_pairs(Json& json, std::string_view member, const Pairs& pairs, std::string_view first,
               std::string_view second) {
  if (pairs.empty()) return;
  Json array = Json::array();
  for (const auto& [left, right] : pairs) {
    array.push(Json::object().set(first, left).set(second, right));
  }
  json.set(member, std::move(array));
}

void set_flag(Json& json, std::string_view member, bool value) {
  if (value) json.set(member, true);
}

void set_optional(Json& json, std::string_view member, std::optional<std::int64_t> value) {
  if (value) json.set(member, *value);
}

// --- What a container gets of its host ---

void read_linux(const Json& json, HostSettings& host) {
  host.init_process = flag_of(json, "initProcessEnabled");
  host.shared_memory_mib = number_of(json, "sharedMemorySize").value_or(0);
  host.max_swap_mib = number_of(json, "maxSwap");
  host.swappiness = number_of(json, "swappiness");
  for (const Json& entry : json.array_or_empty("tmpfs")) {
    host.tmpfs.push_back({text_of(entry, "containerPath"), number_of(entry, "size").value_or(0),
                          texts_of(entry, "mountOptions")});
  }
  const Json& capabilities = object_of(json, "capabilities");
  host.capabilities_added = texts_of(capabilities, "add");
  host.capabilities_dropped = texts_of(capabilities, "drop");
  for (const Json& entry : json.array_or_empty("devices")) {
    host.devices.push_back({text_of(entry, "hostPath"), text_of(entry, "containerPath"),
                            texts_of(entry, "permissions")});
  }
}

Json linux_json(const HostSettings& host) {
  Json json = Json::object();
  set_flag(json, "initProcessEnabled", host.init_process);
  set_number(json, "sharedMemorySize", host.shared_memory_mib);
  set_optional(json, "maxSwap", host.max_swap_mib);
  set_optional(json, "swappiness", host.swappiness);
  Json tmpfs = Json::array();
  for (const core::Tmpfs& entry : host.tmpfs) {
    Json part = Json::object();
    part.set("containerPath", entry.container_path).set("size", entry.size_mib);
    set_array(part, "mountOptions", entry.options);
    tmpfs.push(std::move(part));
  }
  if (!host.tmpfs.empty()) json.set("tmpfs", std::move(tmpfs));
  Json capabilities = Json::object();
  set_array(capabilities, "add", host.capabilities_added);
  set_array(capabilities, "drop", host.capabilities_dropped);
  if (!capabilities.as_object().empty()) json.set("capabilities", std::move(capabilities));
  Json devices = Json::array();
  for (const core::HostDevice& entry : host.devices) {
    Json part = Json::object().set("hostPath", entry.host_path);
    set_text(part, "containerPath", entry.container_path);
    set_array(part, "permissions", entry.permissions);
    devices.push(std::move(part));
  }
  if (!host.devices.empty()) json.set("devices", std::move(devices));
  return json;
}

void read_host(const Json& json, HostSettings& host) {
  for (const Json& entry : json.array_or_empty("mountPoints")) {
    host.mount_points.push_back({text_of(entry, "sourceVolume"), text_of(entry, "containerPath"),
                                 flag_of(entry, "readOnly")});
  }
  for (const Json& entry : json.array_or_empty("volumesFrom")) {
    host.volumes_from.push_back({text_of(entry, "sourceContainer"), flag_of(entry, "readOnly")});
  }
  for (const Json& entry : json.array_or_empty("environmentFiles")) {
    host.environment_files.push_back(text_of(entry, "value"));
  }
  host.user = text_of(json, "user");
  host.hostname = text_of(json, "hostname");
  host.interactive = flag_of(json, "interactive");
  host.pseudo_terminal = flag_of(json, "pseudoTerminal");
  host.privileged = flag_of(json, "privileged");
  host.read_only_root = flag_of(json, "readonlyRootFilesystem");
  host.network_disabled = flag_of(json, "disableNetworking");
  for (const Json& entry : json.array_or_empty("ulimits")) {
    host.ulimits.push_back({text_of(entry, "name"), number_of(entry, "softLimit").value_or(0),
                            number_of(entry, "hardLimit").value_or(0)});
  }
  host.security_options = texts_of(json, "dockerSecurityOptions");
  host.links = texts_of(json, "links");
  host.extra_hosts = pairs_of(json, "extraHosts", "hostname", "ipAddress");
  host.dns_servers = texts_of(json, "dnsServers");
  host.dns_search_domains = texts_of(json, "dnsSearchDomains");
  host.system_controls = pairs_of(json, "systemControls", "namespace", "value");
  read_linux(object_of(json, "linuxParameters"), host);
  const Json& log = object_of(json, "logConfiguration");
  if (!text_of(log, "logDriver").empty()) {
    host.log = core::LogSettings{text_of(log, "logDriver"), map_of(log, "options")};
  }
}

void write_host(const HostSettings& host, Json& json) {
  Json mounts = Json::array();
  for (const core::MountPoint& entry : host.mount_points) {
    Json part = Json::object();
    part.set("sourceVolume", entry.volume).set("containerPath", entry.container_path);
    set_flag(part, "readOnly", entry.read_only);
    mounts.push(std::move(part));
  }
  if (!host.mount_points.empty()) json.set("mountPoints", std::move(mounts));
  Json volumes_from = Json::array();
  for (const core::VolumesFrom& entry : host.volumes_from) {
    Json part = Json::object().set("sourceContainer", entry.container);
    set_flag(part, "readOnly", entry.read_only);
    volumes_from.push(std::move(part));
  }
  if (!host.volumes_from.empty()) json.set("volumesFrom", std::move(volumes_from));
  Json files = Json::array();
  for (const std::string& path : host.environment_files) {
    files.push(Json::object({{"value", path}, {"type", "s3"}}));
  }
  if (!host.environment_files.empty()) json.set("environmentFiles", std::move(files));
  set_text(json, "user", host.user);
  set_text(json, "hostname", host.hostname);
  set_flag(json, "interactive", host.interactive);
  set_flag(json, "pseudoTerminal", host.pseudo_terminal);
  set_flag(json, "privileged", host.privileged);
  set_flag(json, "readonlyRootFilesystem", host.read_only_root);
  set_flag(json, "disableNetworking", host.network_disabled);
  Json ulimits = Json::array();
  for (const core::Ulimit& entry : host.ulimits) {
    ulimits.push(
        Json::object({{"name", entry.name}, {"softLimit", entry.soft}, {"hardLimit", entry.hard}}));
  }
  if (!host.ulimits.empty()) json.set("ulimits", std::move(ulimits));
  set_array(json, "dockerSecurityOptions", host.security_options);
  set_array(json, "links", host.links);
  set_pairs(json, "extraHosts", host.extra_hosts, "hostname", "ipAddress");
  set_array(json, "dnsServers", host.dns_servers);
  set_array(json, "dnsSearchDomains", host.dns_search_domains);
  set_pairs(json, "systemControls", host.system_controls, "namespace", "value");
  Json linux_parameters = linux_json(host);
  if (!linux_parameters.as_object().empty()) {
    json.set("linuxParameters", std::move(linux_parameters));
  }
  if (host.log) {
    Json log = Json::object().set("logDriver", host.log->driver);
    set_map(log, "options", host.log->options);
    json.set("logConfiguration", std::move(log));
  }
}

// --- Its life ---

void read_life(const Json& json, LifeSettings& life) {
  for (const Json& entry : json.array_or_empty("dependsOn")) {
    life.depends_on.push_back({text_of(entry, "containerName"),
                               core::parse_dependency_condition(text_of(entry, "condition"))
                                   .value_or(core::DependencyCondition::kStart)});
  }
  life.start_timeout_s = number_of(json, "startTimeout");
  const Json& check = object_of(json, "healthCheck");
  if (!check.array_or_empty("command").empty()) {
    core::HealthCheck health;
    health.command = texts_of(check, "command");
    health.interval_s = number_of(check, "interval").value_or(health.interval_s);
    health.timeout_s = number_of(check, "timeout").value_or(health.timeout_s);
    health.retries = number_of(check, "retries").value_or(health.retries);
    health.start_period_s = number_of(check, "startPeriod").value_or(health.start_period_s);
    life.health_check = std::move(health);
  }
  const Json& policy = object_of(json, "restartPolicy");
  if (flag_of(policy, "enabled")) {
    core::RestartPolicy restart;
    for (const Json& code : policy.array_or_empty("ignoredExitCodes")) {
      if (code.is_integer()) restart.ignored_exit_codes.push_back(code.as_integer());
    }
    restart.attempt_period_s =
        number_of(policy, "restartAttemptPeriod").value_or(restart.attempt_period_s);
    life.restart = std::move(restart);
  }
}

void write_life(const LifeSettings& life, Json& json) {
  Json depends_on = Json::array();
  for (const core::Dependency& entry : life.depends_on) {
    depends_on.push(Json::object(
        {{"containerName", entry.container}, {"condition", core::to_string(entry.condition)}}));
  }
  if (!life.depends_on.empty()) json.set("dependsOn", std::move(depends_on));
  set_optional(json, "startTimeout", life.start_timeout_s);
  if (const auto& check = life.health_check) {
    json.set("healthCheck", Json::object({{"command", encode_strings(check->command)},
                                          {"interval", check->interval_s},
                                          {"timeout", check->timeout_s},
                                          {"retries", check->retries},
                                          {"startPeriod", check->start_period_s}}));
  }
  if (life.restart) {
    Json policy = Json::object({{"enabled", true}});
    set_array(policy, "ignoredExitCodes", life.restart->ignored_exit_codes);
    policy.set("restartAttemptPeriod", life.restart->attempt_period_s);
    json.set("restartPolicy", std::move(policy));
  }
}

core::Volume read_volume(const Json& json) {
  core::Volume volume;
  volume.name = text_of(json, "name");
  volume.host_path = text_of(object_of(json, "host"), "sourcePath");
  if (!volume.host_path.empty()) volume.kind = core::Volume::Kind::kHostPath;
  const Json& docker = object_of(json, "dockerVolumeConfiguration");
  if (text_of(docker, "scope") == "shared") volume.kind = core::Volume::Kind::kShared;
  volume.driver = text_of(docker, "driver");
  volume.driver_options = map_of(docker, "driverOpts");
  volume.labels = map_of(docker, "labels");
  return volume;
}

Json volume_json(const core::Volume& volume) {
  Json json = Json::object().set("name", volume.name);
  if (volume.kind == core::Volume::Kind::kHostPath) {
    return json.set("host", Json::object({{"sourcePath", volume.host_path}}));
  }
  Json docker = Json::object();
  if (volume.kind == core::Volume::Kind::kShared) {
    docker.set("scope", "shared").set("autoprovision", true);
  }
  set_text(docker, "driver", volume.driver);
  set_map(docker, "driverOpts", volume.driver_options);
  set_map(docker, "labels", volume.labels);
  if (!docker.as_object().empty()) json.set("dockerVolumeConfiguration", std::move(docker));
  return json;
}

// A decimal number times `unit`, as a whole number.
std::optional<std::int64_t> scaled(std::string_view number, std::int64_t unit) {
  const std::size_t point = std::min(number.find('.'), number.size());
  std::int64_t whole = 0;
  std::int64_t fraction = 0;
  std::int64_t divisor = 1;
  if (number.empty() || number == "." || point > 9 || number.size() - point > 7) {
    return std::nullopt;
  }
  for (const char c : number.substr(0, point)) {
    if (c < '0' || c > '9') return std::nullopt;
    whole = whole * 10 + (c - '0');
  }
  for (const char c : number.substr(std::min(point + 1, number.size()))) {
    if (c < '0' || c > '9') return std::nullopt;
    fraction = fraction * 10 + (c - '0');
    divisor *= 10;
  }
  return whole * unit + fraction * unit / divisor;
}

// A plain whole number, or a decimal one followed by `suffix` in any case.
std::optional<std::int64_t> parse_amount(std::string_view text, std::string_view suffix,
                                         std::int64_t unit) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  bool with_suffix = text.size() > suffix.size();
  for (std::size_t i = 0; with_suffix && i < suffix.size(); ++i) {
    with_suffix = lower(text[text.size() - suffix.size() + i]) == suffix[i];
  }
  if (!with_suffix) {
    return text.find('.') == std::string_view::npos ? scaled(text, 1) : std::nullopt;
  }
  text.remove_suffix(suffix.size());
  if (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return scaled(text, unit);
}

}  // namespace

void read_container_settings(const Json& json, ContainerDefinition& container) {
  for (const Json& entry : json.array_or_empty("portMappings")) {
    const int port = port_of(entry, "containerPort");
    if (port == 0) continue;
    container.ports.push_back({port, port_of(entry, "hostPort"), protocol_of(entry)});
  }
  read_host(json, container.host);
  read_life(json, container.life);
}

void write_container_settings(const ContainerDefinition& container, Json& json) {
  Json ports = Json::array();
  for (const core::PortMapping& entry : container.ports) {
    Json part = Json::object().set("containerPort", entry.container_port);
    set_number(part, "hostPort", entry.host_port);
    ports.push(part.set("protocol", core::to_string(entry.protocol)));
  }
  if (!container.ports.empty()) json.set("portMappings", std::move(ports));
  write_host(container.host, json);
  write_life(container.life, json);
}

core::TaskSettings read_task_settings(const Json& json) {
  core::TaskSettings settings;
  for (const Json& entry : json.array_or_empty("volumes")) {
    settings.volumes.push_back(read_volume(entry));
  }
  using core::NamespaceMode;
  settings.pid_mode =
      core::parse_namespace_mode(text_of(json, "pidMode")).value_or(NamespaceMode::kOwn);
  settings.ipc_mode =
      core::parse_namespace_mode(text_of(json, "ipcMode")).value_or(NamespaceMode::kOwn);
  settings.cpu_units = parse_task_cpu(text_of(json, "cpu"));
  settings.memory_mib = parse_task_memory(text_of(json, "memory"));
  return settings;
}

void write_task_settings(const core::TaskSettings& settings, Json& json) {
  Json volumes = Json::array();
  for (const core::Volume& volume : settings.volumes) volumes.push(volume_json(volume));
  if (!settings.volumes.empty()) json.set("volumes", std::move(volumes));
  set_text(json, "pidMode", std::string(core::to_string(settings.pid_mode)));
  set_text(json, "ipcMode", std::string(core::to_string(settings.ipc_mode)));
  if (settings.cpu_units) json.set("cpu", std::to_string(*settings.cpu_units));
  if (settings.memory_mib) json.set("memory", std::to_string(*settings.memory_mib));
}

std::optional<std::int64_t> parse_task_cpu(std::string_view text) {
  return parse_amount(text, "vcpu", 1024);
}

std::optional<std::int64_t> parse_task_memory(std::string_view text) {
  return parse_amount(text, "gb", 1024);
}

Json encode_bindings(const std::vector<core::NetworkBinding>& bindings) {
  Json array = Json::array();
  for (const core::NetworkBinding& binding : bindings) {
    array.push(Json::object({{"bindIP", binding.bind_ip},
                             {"containerPort", binding.container_port},
                             {"hostPort", binding.host_port},
                             {"protocol", core::to_string(binding.protocol)}}));
  }
  return array;
}

std::vector<core::NetworkBinding> decode_bindings(const Json::Array& array) {
  std::vector<core::NetworkBinding> bindings;
  for (const Json& entry : array) {
    core::NetworkBinding binding{text_of(entry, "bindIP"), port_of(entry, "containerPort"),
                                 port_of(entry, "hostPort"), protocol_of(entry)};
    if (binding.container_port != 0 && binding.host_port != 0) {
      bindings.push_back(std::move(binding));
    }
  }
  return bindings;
}

}  // namespace cotenant::codec
