#include "codec/task_definition_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/ids.h"
#include "codec/environment_file_rules.h"
#include "codec/invalid.h"
#include "codec/member_verdicts.h"
#include "codec/settings_json.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;
using base::Status;
using core::ContainerDefinition;
using core::NetworkMode;
using core::TaskDefinition;
using core::Volume;

Status unsupported(std::string_view member, std::string_view text) {
  return fail(ErrorCode::kUnsupportedFeature, fmt::format("{}: {}", member, text));
}

bool is_absolute(std::string_view path) {
  return !path.empty() && path.front() == '/';
}

// --- Volumes ---

Status check_volume(const Json& json, const Volume& volume, const std::string& path,
                    std::vector<std::string>& warnings) {
  if (auto status = apply_verdicts(volume_members(), json, path + ".", warnings); !status) {
    return status;
  }
  if (!base::is_ecs_name(volume.name)) {
    return invalid(path + ".name",
                   "is required: 1 to 255 letters, digits, hyphens and underscores");
  }
  const Json* docker = json.find("dockerVolumeConfiguration");
  const bool configured = docker != nullptr && !docker->as_object().empty();
  if (volume.kind == Volume::Kind::kHostPath || (!volume.host_path.empty() && configured)) {
    if (configured) return invalid(path, "has both host and dockerVolumeConfiguration; give one");
    if (!is_absolute(volume.host_path)) {
      return invalid(path + ".host.sourcePath", "must be an absolute path on the instance");
    }
    if (volume.host_path.find(':') != std::string::npos) {
      return invalid(path + ".host.sourcePath",
                     "must not contain ':', which engines take for the "
                     "end of the path");
    }
    return {};
  }
  if (!configured) return {};
  const std::string at = path + ".dockerVolumeConfiguration";
  if (!volume.driver.empty() && volume.driver != "local") {
    return unsupported(at + ".driver",
                       fmt::format("'{}' is not offered; use the driver local", volume.driver));
  }
  const bool shared = volume.kind == Volume::Kind::kShared;
  const bool autoprovision = docker->bool_or("autoprovision", false);
  if (!shared && docker->find("autoprovision") != nullptr) {
    return invalid(at + ".autoprovision", "is only for scope shared; leave it out");
  }
  if (shared && !autoprovision) {
    return unsupported(
        at + ".autoprovision",
        "a shared volume is made when it is not there, which false forbids; set it to "
        "true");
  }
  return {};
}

Status check_volumes(const Json& document, const TaskDefinition& definition,
                     std::vector<std::string>& warnings) {
  const Json::Array& list = document.array_or_empty("volumes");
  std::set<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("volumes[{}]", i);
    const Volume& volume = definition.settings.volumes[i];
    if (auto status = check_volume(list[i], volume, path, warnings); !status) return status;
    if (!names.insert(volume.name).second) {
      return invalid(path + ".name", fmt::format("'{}' stands twice", volume.name));
    }
  }
  return {};
}

// --- One container ---

// Everything that rules need to know of the container at hand.
struct Subject {
  const TaskDefinition& definition;
  const ContainerDefinition& container;
  const Json& json;
  std::string path;  // "containerDefinitions[0]."
  std::vector<std::string>& warnings;
};

Status check_ports(const Subject& subject, std::set<core::HostPort>& host_ports) {
  const Json::Array& list = subject.json.array_or_empty("portMappings");
  const NetworkMode mode = subject.definition.network_mode;
  std::set<std::pair<int, core::Protocol>> dynamic;
  if (!list.empty() && mode == NetworkMode::kNone) {
    return invalid(subject.path + "portMappings",
                   "is not possible with networkMode none; use bridge");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("{}portMappings[{}]", subject.path, i);
    if (auto status = apply_verdicts(port_mapping_members(), list[i], path + ".", subject.warnings);
        !status) {
      return status;
    }
    const auto container_port = static_cast<int>(list[i].integer_or("containerPort", 0));
    if (container_port == 0) return invalid(path + ".containerPort", "is required: 1 to 65535");
    const auto host_port = static_cast<int>(list[i].integer_or("hostPort", 0));
    const auto protocol =
        core::parse_protocol(list[i].string_or("protocol", "tcp")).value_or(core::Protocol::kTcp);
    if (mode != NetworkMode::kBridge && host_port != 0 && host_port != container_port) {
      return invalid(path + ".hostPort",
                     fmt::format("must be left out or equal containerPort, {}, with networkMode {}",
                                 container_port, core::to_string(mode)));
    }
    if (mode == NetworkMode::kBridge && host_port == 0) {
      if (!dynamic.insert({container_port, protocol}).second) {
        return invalid(path, fmt::format("maps port {}/{} to a dynamic host port twice",
                                         container_port, core::to_string(protocol)));
      }
      continue;
    }
    const core::HostPort port{mode == NetworkMode::kBridge ? host_port : container_port, protocol};
    if (!host_ports.insert(port).second) {
      return invalid(path + (mode == NetworkMode::kBridge ? ".hostPort" : ".containerPort"),
                     fmt::format("{}/{} is taken by another mapping of this task", port.port,
                                 core::to_string(protocol)));
    }
  }
  return {};
}

Status check_mounts(const Subject& subject) {
  const core::HostSettings& host = subject.container.host;
  std::set<std::string> targets;
  const auto add = [&](const std::string& target, const std::string& member) -> Status {
    if (!is_absolute(target)) return invalid(member, "must be an absolute path in the container");
    if (targets.insert(target).second) return {};
    return invalid(member, fmt::format("'{}' has something mounted already", target));
  };
  for (std::size_t i = 0; i < host.mount_points.size(); ++i) {
    const core::MountPoint& mount = host.mount_points[i];
    const std::string path = fmt::format("{}mountPoints[{}]", subject.path, i);
    if (core::find_volume(subject.definition.settings, mount.volume) == nullptr) {
      return invalid(path + ".sourceVolume",
                     fmt::format("'{}' is not among the task's volumes", mount.volume));
    }
    if (auto status = add(mount.container_path, path + ".containerPath"); !status) return status;
    if (mount.container_path.find(':') != std::string::npos) {
      return invalid(path + ".containerPath", "must not contain ':'");
    }
  }
  for (std::size_t i = 0; i < host.tmpfs.size(); ++i) {
    const std::string path = fmt::format("{}linuxParameters.tmpfs[{}]", subject.path, i);
    if (auto status = add(host.tmpfs[i].container_path, path + ".containerPath"); !status) {
      return status;
    }
  }
  return {};
}

Status check_files(const Subject& subject) {
  return check_environment_files(subject.container.host.environment_files, subject.path);
}

Status check_ulimits(const Subject& subject) {
  const std::vector<core::Ulimit>& ulimits = subject.container.host.ulimits;
  std::set<std::string> names;
  for (std::size_t i = 0; i < ulimits.size(); ++i) {
    const std::string path = fmt::format("{}ulimits[{}]", subject.path, i);
    if (!names.insert(ulimits[i].name).second) {
      return invalid(path + ".name", fmt::format("'{}' stands twice", ulimits[i].name));
    }
    const bool unlimited = ulimits[i].hard == -1;
    if (!unlimited && (ulimits[i].soft == -1 || ulimits[i].soft > ulimits[i].hard)) {
      return invalid(path + ".softLimit", fmt::format("{} is more than hardLimit, {}",
                                                      ulimits[i].soft, ulimits[i].hard));
    }
  }
  return {};
}

// Only what belongs to a namespace of the container may be set. Source: Docker, "docker run
// --sysctl".
Status check_system_controls(const Subject& subject) {
  const auto& controls = subject.container.host.system_controls;
  static constexpr std::array<std::string_view, 9> kIpc = {
      "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni",          "kernel.sem", "kernel.shmall",
      "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "fs.mqueue."};
  for (std::size_t i = 0; i < controls.size(); ++i) {
    const std::string path = fmt::format("{}systemControls[{}].namespace", subject.path, i);
    const std::string& name = controls[i].first;
    const bool ipc = std::any_of(kIpc.begin(), kIpc.end(), [&](std::string_view known) {
      return known.back() == '.' ? name.starts_with(known) : name == known;
    });
    if (!ipc && !name.starts_with("net.")) {
      return invalid(path,
                     fmt::format("'{}' is a setting of the whole machine; those of a container "
                                 "are net.*, kernel.shm*, kernel.msg*, kernel.sem and "
                                 "fs.mqueue.*",
                                 name));
    }
    const NetworkMode mode = subject.definition.network_mode;
    if (!ipc && (mode == NetworkMode::kHost || mode == NetworkMode::kAwsvpc)) {
      return invalid(path,
                     fmt::format("net.* is not possible with networkMode {}: it would not be the "
                                 "container's own",
                                 core::to_string(mode)));
    }
    const core::NamespaceMode ipc_mode = subject.definition.settings.ipc_mode;
    if (ipc && (ipc_mode == core::NamespaceMode::kHost || ipc_mode == core::NamespaceMode::kTask)) {
      return invalid(
          path, fmt::format("{} is not possible with ipcMode {}", name, core::to_string(ipc_mode)));
    }
  }
  return {};
}

Status check_log(const Subject& subject) {
  const Json* json = subject.json.find("logConfiguration");
  if (json == nullptr) return {};
  const std::string path = subject.path + "logConfiguration";
  const std::string driver = json->string_or("logDriver", "");
  if (driver == "awslogs") {
    subject.warnings.push_back(
        path + ": awslogs is stored and shown; logs stay with the container engine");
    return {};
  }
  static constexpr std::array<std::string_view, 3> kDrivers = {"json-file", "journald", "syslog"};
  if (std::find(kDrivers.begin(), kDrivers.end(), driver) == kDrivers.end()) {
    return unsupported(path + ".logDriver",
                       fmt::format("{} is not carried out; use json-file, journald, syslog or "
                                   "awslogs, or leave logConfiguration out",
                                   driver));
  }
  return apply_verdicts(log_configuration_members(), *json, path + ".", subject.warnings);
}

Status check_network(const Subject& subject) {
  const core::HostSettings& host = subject.container.host;
  const NetworkMode mode = subject.definition.network_mode;
  const auto only = [&](bool used, std::string_view member, bool possible,
                        std::string_view modes) -> Status {
    if (!used || possible) return {};
    return invalid(subject.path + std::string(member),
                   fmt::format("is not possible with networkMode {}; it needs {}",
                               core::to_string(mode), modes));
  };
  const bool bridge = mode == NetworkMode::kBridge;
  for (const Status& status : {
           only(!host.links.empty(), "links", bridge, "bridge"),
           only(!host.hostname.empty(), "hostname", bridge || mode == NetworkMode::kNone,
                "bridge or none"),
           only(!host.dns_servers.empty(), "dnsServers", bridge, "bridge"),
           only(!host.dns_search_domains.empty(), "dnsSearchDomains", bridge, "bridge"),
           only(!host.extra_hosts.empty(), "extraHosts", bridge || mode == NetworkMode::kHost,
                "bridge or host"),
           only(host.network_disabled, "disableNetworking", mode != NetworkMode::kAwsvpc,
                "bridge, host or none"),
       }) {
    if (!status) return status;
  }
  return {};
}

Status check_health(const Subject& subject) {
  const auto& check = subject.container.life.health_check;
  if (!check) return {};
  const std::string path = subject.path + "healthCheck.command";
  if (check->command.front() != "CMD" && check->command.front() != "CMD-SHELL") {
    return invalid(path + "[0]",
                   fmt::format("'{}' must be CMD, followed by the program and its arguments, or "
                               "CMD-SHELL, followed by a line for the shell",
                               check->command.front()));
  }
  if (check->command.size() < 2) return invalid(path, "must name the command to run");
  return {};
}

Status check_container(const Subject& subject, std::set<core::HostPort>& host_ports) {
  if (auto status = check_ports(subject, host_ports); !status) return status;
  for (auto* const check : {&check_mounts, &check_files, &check_ulimits, &check_system_controls,
                            &check_log, &check_network, &check_health}) {
    if (auto status = check(subject); !status) return status;
  }
  const core::HostSettings& host = subject.container.host;
  for (std::size_t i = 0; i < host.security_options.size(); ++i) {
    if (!host.security_options[i].starts_with("credentialspec:")) continue;
    return unsupported(fmt::format("{}dockerSecurityOptions[{}]", subject.path, i),
                       "credential specs are not offered; leave it out");
  }
  if (host.swappiness && !host.max_swap_mib) {
    subject.warnings.push_back(
        subject.path + "linuxParameters.swappiness: has no effect without maxSwap (as ECS)");
  }
  if (host.max_swap_mib && !subject.container.memory_mib) {
    return invalid(subject.path + "linuxParameters.maxSwap", "needs memory, the limit it adds to");
  }
  return {};
}

// --- The task as a whole ---

Status check_task_size(const Json& document, const TaskDefinition& definition,
                       std::vector<std::string>& warnings) {
  const auto given = [&](std::string_view member) {
    return !document.string_or(member, "").empty();
  };
  const core::TaskSettings& settings = definition.settings;
  if (given("cpu") && (!settings.cpu_units || *settings.cpu_units < 1)) {
    return invalid("cpu", "must be CPU units, like \"1024\", or vCPUs, like \".5 vCPU\"");
  }
  if (given("memory") && (!settings.memory_mib || *settings.memory_mib < 6)) {
    return invalid("memory", "must be MiB, like \"512\", or GiB, like \"0.5 GB\"; at least 6 MiB");
  }
  TaskDefinition without = definition;
  without.settings.cpu_units.reset();
  without.settings.memory_mib.reset();
  const core::TaskNeed sum = core::task_need(without);
  if (settings.cpu_units && sum.cpu_units > *settings.cpu_units) {
    return invalid("cpu", fmt::format("{} units are less than the containers' sum, {}",
                                      *settings.cpu_units, sum.cpu_units));
  }
  if (settings.memory_mib && sum.memory_mib > *settings.memory_mib) {
    return invalid("memory", fmt::format("{} MiB are less than the containers' sum, {}",
                                         *settings.memory_mib, sum.memory_mib));
  }
  if (!settings.cpu_units && !settings.memory_mib) return {};
  if (definition.containers.size() > 1) {
    warnings.push_back(
        "cpu, memory: of a task with several containers they are the reservation of all and the limit "
        "of each, not of all together");
  }
  return {};
}

Status check_platform(const Json& document) {
  const Json* platform = document.find("runtimePlatform");
  if (platform == nullptr) return {};
  const std::string family = platform->string_or("operatingSystemFamily", "LINUX");
  if (family == "LINUX") return {};
  return unsupported("runtimePlatform.operatingSystemFamily",
                     fmt::format("{} is not offered: instances run Linux", family));
}

}  // namespace

Status check_task_settings(const Json& document, const TaskDefinition& definition,
                           std::vector<std::string>& warnings) {
  if (auto status = check_platform(document); !status) return status;
  if (auto status = check_volumes(document, definition, warnings); !status) return status;
  std::set<core::HostPort> host_ports;
  const Json::Array& containers = document.array_or_empty("containerDefinitions");
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Subject subject{definition, definition.containers[i], containers[i],
                          fmt::format("containerDefinitions[{}].", i), warnings};
    if (auto status = check_container(subject, host_ports); !status) return status;
  }
  if (auto status = check_container_order(definition); !status) return status;
  return check_task_size(document, definition, warnings);
}

}  // namespace cotenant::codec
