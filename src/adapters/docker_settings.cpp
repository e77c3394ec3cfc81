#include "adapters/docker_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/units.h"

namespace cotenant::adapters {
namespace {

using codec::Json;
using core::HostSettings;
using core::NamespaceMode;

// A container may not fill the disk with its output.
constexpr const char* kLogMaxSize = "10m";
constexpr const char* kLogMaxFiles = "3";
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
constexpr std::int64_t kNanoCpusPerUnit = kNanosPerSecond / 1024;

void set_list(Json& json, std::string_view member, const std::vector<std::string>& values) {
  if (values.empty()) return;
  Json array = Json::array();
  for (const std::string& value : values) array.push(value);
  json.set(member, std::move(array));
}

Json text_object(const std::map<std::string, std::string>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json.set(name, value);
  return json;
}

void set_ports(const ports::ContainerSpec& spec, Json& body, Json& host) {
  Json exposed = Json::object();
  Json bindings = Json::object();
  for (const core::PortMapping& mapping : spec.ports) {
    const std::string key =
        fmt::format("{}/{}", mapping.container_port, core::to_string(mapping.protocol));
    exposed.set(key, Json::object());
    Json list = bindings.find(key) == nullptr ? Json::array() : *bindings.find(key);
    // An empty HostPort: the engine chooses.
    list.push(Json::object(
        {{"HostPort", mapping.host_port == 0 ? "" : std::to_string(mapping.host_port)}}));
    bindings.set(key, std::move(list));
  }
  if (spec.ports.empty()) return;
  body.set("ExposedPorts", std::move(exposed));
  host.set("PortBindings", std::move(bindings));
}

Json mounts_json(const ports::ContainerSpec& spec) {
  Json array = Json::array();
  for (const ports::Mount& mount : spec.mounts) {
    if (mount.make_source) continue;
    // "Mounts" and not "Binds": with those a missing source would be made as an empty directory.
    array.push(Json::object({{"Type", "bind"},
                             {"Source", mount.source},
                             {"Target", mount.target},
                             {"ReadOnly", mount.read_only}}));
  }
  for (const ports::VolumeMount& mount : spec.volume_mounts) {
    Json options = Json::object();
    if (!mount.labels.empty()) options.set("Labels", text_object(mount.labels));
    if (!mount.driver.empty() || !mount.driver_options.empty()) {
      options.set("DriverConfig",
                  Json::object({{"Name", mount.driver.empty() ? "local" : mount.driver},
                                {"Options", text_object(mount.driver_options)}}));
    }
    array.push(Json::object({{"Type", "volume"},
                             {"Source", mount.volume},
                             {"Target", mount.target},
                             {"ReadOnly", mount.read_only},
                             {"VolumeOptions", std::move(options)}}));
  }
  return array;
}

void set_storage(const ports::ContainerSpec& spec, Json& host) {
  if (Json mounts = mounts_json(spec); !mounts.as_array().empty()) {
    host.set("Mounts", std::move(mounts));
  }
  std::vector<std::string> binds;
  for (const ports::Mount& mount : spec.mounts) {
    if (!mount.make_source) continue;
    binds.push_back(
        fmt::format("{}:{}:{}", mount.source, mount.target, mount.read_only ? "ro" : "rw"));
  }
  set_list(host, "Binds", binds);
  set_list(host, "VolumesFrom", spec.volumes_from);
  Json tmpfs = Json::object();
  for (const core::Tmpfs& entry : spec.host.tmpfs) {
    std::string options = fmt::format("size={}m", entry.size_mib);
    for (const std::string& option : entry.options) options += "," + option;
    tmpfs.set(entry.container_path, options);
  }
  if (!spec.host.tmpfs.empty()) host.set("Tmpfs", std::move(tmpfs));
  if (spec.host.read_only_root) host.set("ReadonlyRootfs", true);
  if (spec.host.shared_memory_mib > 0) {
    host.set("ShmSize", spec.host.shared_memory_mib * base::kBytesPerMib);
  }
}

std::string device_permissions(const std::vector<std::string>& names) {
  if (names.empty()) return "rwm";
  std::string letters;
  for (const std::string& name : names) letters += name.substr(0, 1);  // read, write, mknod
  return letters;
}

void set_devices(const ports::ContainerSpec& spec, Json& host) {
  Json array = Json::array();
  const auto add = [&](const std::string& from, const std::string& to, std::string permissions) {
    array.push(Json::object({{"PathOnHost", from},
                             {"PathInContainer", to},
                             {"CgroupPermissions", std::move(permissions)}}));
  };
  for (const ports::DeviceNode& node : spec.device_nodes) {
    add(node.host_path, node.container_path, node.permissions);
  }
  for (const core::HostDevice& device : spec.host.devices) {
    add(device.host_path, device.container_path.empty() ? device.host_path : device.container_path,
        device_permissions(device.permissions));
  }
  if (!array.as_array().empty()) host.set("Devices", std::move(array));
}

void set_limits(const ports::ContainerSpec& spec, Json& host) {
  Json ulimits = Json::array();
  for (const core::Ulimit& limit : spec.host.ulimits) {
    ulimits.push(Json::object({{"Name", limit.name}, {"Soft", limit.soft}, {"Hard", limit.hard}}));
  }
  if (!spec.host.ulimits.empty()) host.set("Ulimits", std::move(ulimits));
  if (spec.cpu_limit_units > 0) host.set("NanoCpus", spec.cpu_limit_units * kNanoCpusPerUnit);
  if (spec.host.max_swap_mib && spec.memory_mib > 0) {
    host.set("MemorySwap", (spec.memory_mib + *spec.host.max_swap_mib) * base::kBytesPerMib);
    // ECS API reference, LinuxParameters.swappiness: without maxSwap it is ignored.
    if (spec.host.swappiness) host.set("MemorySwappiness", *spec.host.swappiness);
  }
  Json sysctls = Json::object();
  for (const auto& [name, value] : spec.host.system_controls) sysctls.set(name, value);
  if (!spec.host.system_controls.empty()) host.set("Sysctls", std::move(sysctls));
}

void set_security(const HostSettings& settings, Json& host) {
  if (settings.privileged) host.set("Privileged", true);
  if (settings.init_process) host.set("Init", true);
  set_list(host, "CapAdd", settings.capabilities_added);
  set_list(host, "CapDrop", settings.capabilities_dropped);
  set_list(host, "SecurityOpt", settings.security_options);
}

void set_names(const ports::ContainerSpec& spec, Json& body, Json& host) {
  const HostSettings& settings = spec.host;
  if (!settings.hostname.empty()) body.set("Hostname", settings.hostname);
  if (settings.network_disabled) body.set("NetworkDisabled", true);
  std::vector<std::string> extra_hosts;
  for (const auto& [name, address] : settings.extra_hosts) {
    extra_hosts.push_back(name + ":" + address);
  }
  set_list(host, "ExtraHosts", extra_hosts);
  set_list(host, "Dns", settings.dns_servers);
  set_list(host, "DnsSearch", settings.dns_search_domains);
  set_list(host, "Links", spec.links);
}

void set_namespaces(const ports::ContainerSpec& spec, Json& host) {
  const std::string holder = "container:" + spec.namespace_holder;
  if (spec.network_mode == ports::NetworkMode::kAwsvpc) host.set("NetworkMode", holder);
  if (spec.pid_mode == NamespaceMode::kHost) host.set("PidMode", "host");
  if (spec.pid_mode == NamespaceMode::kTask) host.set("PidMode", holder);
  if (spec.ipc_mode == NamespaceMode::kHost) host.set("IpcMode", "host");
  if (spec.ipc_mode == NamespaceMode::kNone) host.set("IpcMode", "none");
  if (spec.ipc_mode == NamespaceMode::kTask) {
    host.set("IpcMode", spec.namespace_holder.empty() ? "shareable" : holder);
  }
}

// Without a driver, or with one that is only stored: the engine's files, bounded.
Json log_json(const std::optional<core::LogSettings>& settings) {
  const bool own = settings && settings->driver != "awslogs";
  std::map<std::string, std::string> options;
  if (own) options = settings->options;
  if (!own || settings->driver == "json-file") {
    options.try_emplace("max-size", kLogMaxSize);
    options.try_emplace("max-file", kLogMaxFiles);
  }
  return Json::object(
      {{"Type", own ? settings->driver : "json-file"}, {"Config", text_object(options)}});
}

void set_health(const ports::ContainerSpec& spec, Json& body) {
  if (!spec.health_check) return;
  const core::HealthCheck& check = *spec.health_check;
  Json json = Json::object();
  set_list(json, "Test", check.command);
  json.set("Interval", check.interval_s * kNanosPerSecond)
      .set("Timeout", check.timeout_s * kNanosPerSecond)
      .set("Retries", check.retries)
      .set("StartPeriod", check.start_period_s * kNanosPerSecond);
  body.set("Healthcheck", std::move(json));
}

int parse_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool good = error == std::errc() && end == text.data() + text.size();
  return good && port >= 1 && port <= 65535 ? port : 0;
}

}  // namespace

void set_docker_settings(const ports::ContainerSpec& spec, Json& body, Json& host) {
  if (!spec.host.user.empty()) body.set("User", spec.host.user);
  if (spec.host.interactive) body.set("OpenStdin", true);
  if (spec.host.pseudo_terminal) body.set("Tty", true);
  set_health(spec, body);
  set_names(spec, body, host);
  set_namespaces(spec, host);
  set_ports(spec, body, host);
  set_storage(spec, host);
  set_devices(spec, host);
  set_limits(spec, host);
  set_security(spec.host, host);
  host.set("LogConfig", log_json(spec.host.log));
}

std::vector<core::NetworkBinding> parse_docker_bindings(const Json& inspection) {
  std::vector<core::NetworkBinding> bindings;
  const Json* network = inspection.find("NetworkSettings");
  const Json* ports = network == nullptr ? nullptr : network->find("Ports");
  if (ports == nullptr || !ports->is_object()) return bindings;
  for (const Json::Member& entry : ports->as_object()) {
    const std::size_t slash = entry.name.find('/');
    if (slash == std::string::npos || !entry.value.is_array()) continue;
    const auto protocol = core::parse_protocol(entry.name.substr(slash + 1));
    const int container_port = parse_port(entry.name.substr(0, slash));
    for (const Json& at : entry.value.as_array()) {
      const int host_port = parse_port(at.string_or("HostPort", ""));
      if (!protocol || container_port == 0 || host_port == 0) continue;
      bindings.push_back({at.string_or("HostIp", ""), container_port, host_port, *protocol});
    }
  }
  std::sort(bindings.begin(), bindings.end());
  return bindings;
}

std::string parse_docker_address(const Json& inspection) {
  const Json* network = inspection.find("NetworkSettings");
  return network == nullptr ? "" : network->string_or("IPAddress", "");
}

core::HealthStatus parse_docker_health(const Json& state) {
  const Json* health = state.find("Health");
  const std::string status = health == nullptr ? "" : health->string_or("Status", "");
  if (status == "healthy") return core::HealthStatus::kHealthy;
  if (status == "unhealthy") return core::HealthStatus::kUnhealthy;
  return core::HealthStatus::kUnknown;  // "starting", "none"
}

}  // namespace cotenant::adapters
