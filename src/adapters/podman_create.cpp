#include "adapters/podman_create.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Status;
using codec::Json;
using core::NamespaceMode;

// As docker_settings.cpp: a container may not fill the disk with its output.
constexpr std::int64_t kLogBytes = std::int64_t{30} * 1000 * 1000;
constexpr std::int64_t kPodmanNanosPerSecond = 1'000'000'000;
// The kernel's usual period; a quota is a part of it.
constexpr std::int64_t kCpuPeriodUs = 100'000;
constexpr std::int64_t kPodmanSharesMin = 2;
constexpr std::int64_t kPodmanSharesMax = 262144;

Json text_list(const std::vector<std::string>& values) {
  Json array = Json::array();
  for (const std::string& value : values) array.push(value);
  return array;
}

template <class Pairs>
Json text_map(const Pairs& pairs) {
  Json json = Json::object();
  for (const auto& [name, value] : pairs) json.set(name, value);
  return json;
}

void set_text_list(Json& json, std::string_view member, const std::vector<std::string>& values) {
  if (!values.empty()) json.set(member, text_list(values));
}

// Podman's limits have no sign, so that -1 is no limit that it takes. The largest number that JSON of ours
// can say is as good as unlimited.
std::int64_t podman_limit(std::int64_t value) {
  return value < 0 ? std::numeric_limits<std::int64_t>::max() : value;
}

Json namespace_json(std::string_view mode, std::string_view value = "") {
  Json json = Json::object({{"nsmode", mode}});
  if (!value.empty()) json.set("value", value);
  return json;
}

void set_podman_namespaces(const ports::ContainerSpec& spec, Json& body) {
  switch (spec.host.network_disabled ? ports::NetworkMode::kNone : spec.network_mode) {
    case ports::NetworkMode::kBridge:
      body.set("netns", namespace_json("bridge"));
      break;
    case ports::NetworkMode::kHost:
      body.set("netns", namespace_json("host"));
      break;
    case ports::NetworkMode::kNone:
      body.set("netns", namespace_json("none"));
      break;
    case ports::NetworkMode::kAwsvpc:
      body.set("netns", namespace_json("container", spec.namespace_holder));
      break;
  }
  if (spec.pid_mode == NamespaceMode::kHost) body.set("pidns", namespace_json("host"));
  if (spec.pid_mode == NamespaceMode::kTask) {
    body.set("pidns", namespace_json("container", spec.namespace_holder));
  }
  if (spec.ipc_mode == NamespaceMode::kHost) body.set("ipcns", namespace_json("host"));
  if (spec.ipc_mode == NamespaceMode::kNone) body.set("ipcns", namespace_json("none"));
  if (spec.ipc_mode == NamespaceMode::kTask) {
    body.set("ipcns", spec.namespace_holder.empty()
                          ? namespace_json("shareable")
                          : namespace_json("container", spec.namespace_holder));
  }
}

void set_podman_ports(const ports::ContainerSpec& spec, Json& body) {
  Json array = Json::array();
  for (const core::PortMapping& mapping : spec.ports) {
    array.push(Json::object({{"container_port", mapping.container_port},
                             {"host_port", mapping.host_port},  // 0: Podman chooses
                             {"protocol", core::to_string(mapping.protocol)}}));
  }
  if (!spec.ports.empty()) body.set("portmappings", std::move(array));
}

void set_podman_storage(const ports::ContainerSpec& spec, Json& body) {
  Json mounts = Json::array();
  for (const ports::Mount& mount : spec.mounts) {
    mounts.push(Json::object({{"type", "bind"},
                              {"source", mount.source},
                              {"destination", mount.target},
                              {"options", text_list({"rbind", mount.read_only ? "ro" : "rw"})}}));
  }
  for (const core::Tmpfs& entry : spec.host.tmpfs) {
    std::vector<std::string> options = {fmt::format("size={}m", entry.size_mib)};
    options.insert(options.end(), entry.options.begin(), entry.options.end());
    mounts.push(Json::object({{"type", "tmpfs"},
                              {"source", "tmpfs"},
                              {"destination", entry.container_path},
                              {"options", text_list(options)}}));
  }
  if (!mounts.as_array().empty()) body.set("mounts", std::move(mounts));
  Json volumes = Json::array();
  for (const ports::VolumeMount& mount : spec.volume_mounts) {
    volumes.push(Json::object({{"Name", mount.volume},
                               {"Dest", mount.target},
                               {"Options", text_list({mount.read_only ? "ro" : "rw"})}}));
  }
  if (!spec.volume_mounts.empty()) body.set("volumes", std::move(volumes));
  set_text_list(body, "volumes_from", spec.volumes_from);
  if (spec.host.read_only_root) body.set("read_only_filesystem", true);
  if (spec.host.shared_memory_mib > 0) {
    body.set("shm_size", spec.host.shared_memory_mib * base::kBytesPerMib);
  }
}

void set_podman_devices(const ports::ContainerSpec& spec, Json& body) {
  Json devices = Json::array();
  for (const std::string& name : spec.cdi_devices) devices.push(Json::object({{"path", name}}));
  for (const ports::DeviceNode& node : spec.device_nodes) {
    devices.push(Json::object({{"path", fmt::format("{}:{}:{}", node.host_path, node.container_path,
                                                    node.permissions)}}));
  }
  for (const core::HostDevice& device : spec.host.devices) {
    std::string letters;
    for (const std::string& name : device.permissions) letters += name.substr(0, 1);
    devices.push(Json::object(
        {{"path",
          fmt::format("{}:{}:{}", device.host_path,
                      device.container_path.empty() ? device.host_path : device.container_path,
                      letters.empty() ? "rwm" : letters)}}));
  }
  if (!devices.as_array().empty()) body.set("devices", std::move(devices));
}

void set_podman_limits(const ports::ContainerSpec& spec, Json& body) {
  Json cpu =
      Json::object({{"shares", std::clamp(spec.cpu_units, kPodmanSharesMin, kPodmanSharesMax)}});
  if (spec.cpu_limit_units > 0) {
    cpu.set("period", kCpuPeriodUs).set("quota", spec.cpu_limit_units * kCpuPeriodUs / 1024);
  }
  Json memory = Json::object();
  if (spec.memory_mib > 0) {
    const std::int64_t limit = spec.memory_mib * base::kBytesPerMib;
    // As Docker: as much swap again, unless the definition says how much.
    const std::int64_t swap =
        spec.host.max_swap_mib ? *spec.host.max_swap_mib * base::kBytesPerMib : limit;
    memory.set("limit", limit).set("swap", limit + swap);
    if (spec.host.max_swap_mib && spec.host.swappiness) {
      memory.set("swappiness", *spec.host.swappiness);
    }
  }
  if (spec.memory_reservation_mib > 0) {
    memory.set("reservation", spec.memory_reservation_mib * base::kBytesPerMib);
  }
  Json limits = Json::object({{"cpu", std::move(cpu)}});
  if (!memory.as_object().empty()) limits.set("memory", std::move(memory));
  body.set("resource_limits", std::move(limits));
  Json rlimits = Json::array();
  for (const core::Ulimit& limit : spec.host.ulimits) {
    rlimits.push(Json::object({{"type", limit.name},
                               {"soft", podman_limit(limit.soft)},
                               {"hard", podman_limit(limit.hard)}}));
  }
  if (!spec.host.ulimits.empty()) body.set("r_limits", std::move(rlimits));
  if (!spec.host.system_controls.empty()) {
    body.set("sysctl", text_map(spec.host.system_controls));
  }
}

Status set_podman_security(const ports::ContainerSpec& spec, Json& body) {
  const core::HostSettings& settings = spec.host;
  if (settings.privileged) body.set("privileged", true);
  if (settings.init_process) body.set("init", true);
  set_text_list(body, "cap_add", settings.capabilities_added);
  set_text_list(body, "cap_drop", settings.capabilities_dropped);
  std::vector<std::string> labels;
  for (const std::string& option : settings.security_options) {
    const std::size_t at = option.find_first_of("=:");
    const std::string_view name = std::string_view(option).substr(0, at);
    const std::string value = at == std::string::npos ? "" : option.substr(at + 1);
    if (name == "no-new-privileges" && value != "false") {
      body.set("no_new_privileges", true);
    } else if (name == "apparmor" && !value.empty()) {
      body.set("apparmor_profile", value);
    } else if (name == "label" && !value.empty()) {
      labels.push_back(value);
    } else if (name != "no-new-privileges") {
      return fail(
          ErrorCode::kClient,
          fmt::format("container '{}': dockerSecurityOptions: '{}' has no counterpart where "
                      "Podman gives the GPU by CDI",
                      spec.name, option));
    }
  }
  set_text_list(body, "selinux_opts", labels);
  return {};
}

Status set_podman_names(const ports::ContainerSpec& spec, Json& body) {
  const core::HostSettings& settings = spec.host;
  if (!spec.links.empty()) {
    return fail(ErrorCode::kClient,
                fmt::format("container '{}': links: Podman has none; use networkMode awsvpc, where "
                            "the task's containers meet on localhost",
                            spec.name));
  }
  if (!settings.hostname.empty()) body.set("hostname", settings.hostname);
  std::vector<std::string> extra_hosts;
  for (const auto& [name, address] : settings.extra_hosts) {
    extra_hosts.push_back(name + ":" + address);
  }
  set_text_list(body, "hostadd", extra_hosts);
  set_text_list(body, "dns_server", settings.dns_servers);
  set_text_list(body, "dns_search", settings.dns_search_domains);
  return {};
}

// "10m" as Docker's json-file reads it; 0: not such a size.
std::int64_t log_size_bytes(std::string_view text) {
  std::int64_t count = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, count);
  constexpr std::string_view kUnits = "kmg";
  constexpr std::int64_t kUnitBytes[] = {1 << 10, 1 << 20, 1 << 30};
  if (error != std::errc() || count <= 0 || count > (1 << 20)) return 0;
  if (end == last) return count;
  const std::size_t unit = end + 1 == last ? kUnits.find(*end) : std::string_view::npos;
  return unit == std::string_view::npos ? 0 : count * kUnitBytes[unit];
}

Json podman_log_json(const std::optional<core::LogSettings>& settings) {
  const bool own = settings && settings->driver != "awslogs";
  const std::string driver = own ? settings->driver : "json-file";
  Json json = Json::object({{"driver", driver}});
  std::int64_t bytes = driver == "json-file" ? kLogBytes : 0;
  Json options = Json::object();
  if (own) {
    for (const auto& [name, value] : settings->options) {
      if (name == "max-size") {
        bytes = log_size_bytes(value);
      } else if (name != "max-file") {  // Podman keeps one file
        options.set(name, value);
      }
    }
  }
  if (bytes > 0) json.set("size", bytes);
  if (!options.as_object().empty()) json.set("options", std::move(options));
  return json;
}

Json podman_health_json(const core::HealthCheck& check) {
  return Json::object({{"Test", text_list(check.command)},
                       {"Interval", check.interval_s * kPodmanNanosPerSecond},
                       {"Timeout", check.timeout_s * kPodmanNanosPerSecond},
                       {"Retries", check.retries},
                       {"StartPeriod", check.start_period_s * kPodmanNanosPerSecond}});
}

}  // namespace

base::Result<Json> podman_create_body(const ports::ContainerSpec& spec) {
  Json body = Json::object({{"name", spec.name}, {"image", spec.image}});
  // An absent member means the image's own.
  set_text_list(body, "entrypoint", spec.entry_point);
  set_text_list(body, "command", spec.command);
  if (!spec.working_directory.empty()) body.set("work_dir", spec.working_directory);
  Json environment = Json::object();
  for (const ports::EnvironmentVariable& variable : spec.environment) {
    environment.set(variable.name, variable.value);
  }
  body.set("env", std::move(environment));
  body.set("labels", text_map(spec.labels));
  if (!spec.host.user.empty()) body.set("user", spec.host.user);
  if (spec.host.interactive) body.set("stdin", true);
  if (spec.host.pseudo_terminal) body.set("terminal", true);
  if (spec.health_check) body.set("healthconfig", podman_health_json(*spec.health_check));
  body.set("log_configuration", podman_log_json(spec.host.log));
  set_podman_namespaces(spec, body);
  set_podman_ports(spec, body);
  set_podman_storage(spec, body);
  set_podman_devices(spec, body);
  set_podman_limits(spec, body);
  if (Status set = set_podman_security(spec, body); !set) return fail(set.error());
  if (Status set = set_podman_names(spec, body); !set) return fail(set.error());
  return body;
}

std::vector<Json> podman_volume_bodies(const ports::ContainerSpec& spec) {
  std::vector<Json> bodies;
  for (const ports::VolumeMount& mount : spec.volume_mounts) {
    if (mount.driver.empty() && mount.driver_options.empty() && mount.labels.empty()) continue;
    Json body = Json::object({{"Name", mount.volume}});
    if (!mount.driver.empty()) body.set("Driver", mount.driver);
    if (!mount.driver_options.empty()) body.set("DriverOpts", text_map(mount.driver_options));
    if (!mount.labels.empty()) body.set("Labels", text_map(mount.labels));
    bodies.push_back(std::move(body));
  }
  return bodies;
}

}  // namespace cotenant::adapters
