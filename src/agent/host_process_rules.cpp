#include "agent/host_process_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "agent/pause_container.h"

namespace cotenant::agent {
namespace {

using core::HostSettings;
using core::NamespaceMode;
using core::NetworkMode;
using core::Volume;

struct Rule {
  bool applies;
  std::string_view member;
  std::string_view why;
};

// The first that applies refuses.
std::string first_refusal(const ContainerPlan& plan) {
  const core::ContainerDefinition& definition = plan.container.definition;
  const HostSettings& host = definition.host;
  const bool remapped = std::any_of(
      definition.ports.begin(), definition.ports.end(),
      [](const core::PortMapping& port) { return port.host_port != port.container_port; });
  const bool moved_device =
      std::any_of(host.devices.begin(), host.devices.end(), [](const core::HostDevice& device) {
        return !device.container_path.empty() && device.container_path != device.host_path;
      });
  const Rule rules[] = {
      {plan.network_mode == NetworkMode::kAwsvpc, "networkMode",
       "awsvpc needs a container engine; use host"},
      {plan.settings.pid_mode == NamespaceMode::kTask, "pidMode", "task needs a container engine"},
      {plan.settings.ipc_mode == NamespaceMode::kTask, "ipcMode", "task needs a container engine"},
      {plan.network_mode == NetworkMode::kBridge && remapped, "portMappings",
       "a process has the host's own ports: give hostPort the value of containerPort"},
      {!host.links.empty(), "links", "they need a container engine; processes meet at 127.0.0.1"},
      {!host.volumes_from.empty(), "volumesFrom",
       "it needs a container engine; processes have the host's files"},
      {!host.extra_hosts.empty(), "extraHosts", "a process has the host's /etc/hosts"},
      {!host.dns_servers.empty(), "dnsServers", "a process has the host's /etc/resolv.conf"},
      {!host.dns_search_domains.empty(), "dnsSearchDomains",
       "a process has the host's /etc/resolv.conf"},
      {!host.system_controls.empty(), "systemControls", "they would be the host's own"},
      {!host.tmpfs.empty(), "linuxParameters.tmpfs", "it would be mounted on the host"},
      {moved_device, "linuxParameters.devices",
       "a process sees a device at the host's path only; leave containerPath out"},
      {definition.life.health_check.has_value(), "healthCheck",
       "it is carried out by container engines only"},
  };
  for (const Rule& rule : rules) {
    if (rule.applies) return fmt::format("{}: {}", rule.member, rule.why);
  }
  return "";
}

std::string volume_refusal(const ContainerPlan& plan) {
  for (const core::MountPoint& mount : plan.container.definition.host.mount_points) {
    const Volume* volume = core::find_volume(plan.settings, mount.volume);
    const bool same = volume != nullptr && volume->kind == Volume::Kind::kHostPath &&
                      volume->host_path == mount.container_path;
    if (same) continue;
    return fmt::format(
        "mountPoints: a process has the host's files at their own paths: volume '{}' must have a "
        "host.sourcePath, and containerPath be the same",
        mount.volume);
  }
  return "";
}

// What is asked for and not given.
std::vector<std::string_view> let_go(const ContainerPlan& plan) {
  const HostSettings& host = plan.container.definition.host;
  const bool read_only = std::any_of(host.mount_points.begin(), host.mount_points.end(),
                                     [](const core::MountPoint& mount) { return mount.read_only; });
  const bool other_log =
      host.log && host.log->driver != "json-file" && host.log->driver != "awslogs";
  const std::pair<bool, std::string_view> members[] = {
      {plan.network_mode == NetworkMode::kNone, "networkMode (it has the host's network)"},
      {read_only, "mountPoints.readOnly"},
      {host.read_only_root, "readonlyRootFilesystem"},
      {host.network_disabled, "disableNetworking"},
      {!host.hostname.empty(), "hostname"},
      {!host.security_options.empty(), "dockerSecurityOptions"},
      {!host.capabilities_added.empty() || !host.capabilities_dropped.empty(),
       "linuxParameters.capabilities"},
      {host.shared_memory_mib > 0, "linuxParameters.sharedMemorySize"},
      {host.max_swap_mib.has_value() || host.swappiness.has_value(), "linuxParameters.maxSwap"},
      {host.pseudo_terminal, "pseudoTerminal"},
      {plan.settings.ipc_mode == NamespaceMode::kNone, "ipcMode"},
      {other_log, "logConfiguration (its output is kept in files)"},
  };
  std::vector<std::string_view> names;
  for (const auto& [asked, name] : members) {
    if (asked) names.push_back(name);
  }
  return names;
}

}  // namespace

base::Status fit_to_host(const ContainerPlan& plan, std::vector<std::string>& warnings) {
  const core::ContainerDefinition& definition = plan.container.definition;
  // Of a task whose pause container is refused, that is the reason that is shown.
  std::string refusal = first_refusal(plan);
  if (refusal.empty()) refusal = volume_refusal(plan);
  if (refusal.empty() && !is_pause(plan.container) && definition.entry_point.empty() &&
      definition.command.empty()) {
    refusal =
        "entryPoint, command: one of them must name a program of this machine, because the image "
        "is not used";
  }
  if (!refusal.empty()) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("container '{}': {} (this instance runs containers as processes)",
                                  definition.name, refusal));
  }
  if (const auto names = let_go(plan); !names.empty()) {
    warnings.push_back(
        fmt::format("container '{}' of {}:{} is a process without isolation; not carried out: {}",
                    definition.name, plan.family, plan.revision, fmt::join(names, ", ")));
  }
  return {};
}

}  // namespace cotenant::agent
