#include "agent/container_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/environment_file.h"
#include "agent/labels.h"
#include "agent/pause_container.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using base::fail;
using base::Status;
using core::Volume;

Status refuse(const ContainerPlan& plan, std::string_view member, std::string_view text) {
  return fail(ErrorCode::kClient,
              fmt::format("container '{}': {}: {}", plan.container.definition.name, member, text));
}

// The definition's own variables win over its files'.
Status add_environment_files(const ContainerPlan& plan, ports::ContainerSpec& spec) {
  for (const std::string& path : plan.container.definition.host.environment_files) {
    const auto variables = read_environment_file(path);
    if (!variables) return refuse(plan, "environmentFiles", variables.error().message);
    for (const core::EnvironmentVariable& variable : *variables) {
      const bool known =
          std::any_of(spec.environment.begin(), spec.environment.end(),
                      [&](const auto& existing) { return existing.name == variable.name; });
      if (!known) spec.environment.push_back(variable);
    }
  }
  return {};
}

Status add_mounts(const ContainerPlan& plan, const std::string& instance_id,
                  ports::ContainerSpec& spec) {
  for (const core::MountPoint& mount : plan.container.definition.host.mount_points) {
    const Volume* volume = core::find_volume(plan.settings, mount.volume);
    if (volume == nullptr) {
      return refuse(plan, "mountPoints",
                    fmt::format("'{}' is not among the task's volumes", mount.volume));
    }
    if (volume->kind == Volume::Kind::kHostPath) {
      spec.mounts.push_back({volume->host_path, mount.container_path, mount.read_only, true});
      continue;
    }
    ports::VolumeMount made{volume->name,   mount.container_path,   mount.read_only,
                            volume->driver, volume->driver_options, volume->labels};
    if (volume->kind == Volume::Kind::kTask) {
      // The label lets it be found, and removed with the task's containers.
      made.volume = fmt::format("cotenant-{}-{}", plan.task_id, volume->name);
      made.labels[kInstanceLabel] = instance_id;
      made.labels[kTaskLabel] = plan.task_id;
    }
    spec.volume_mounts.push_back(std::move(made));
  }
  return {};
}

Status add_siblings(const ContainerPlan& plan, ports::ContainerSpec& spec) {
  const core::HostSettings& host = plan.container.definition.host;
  for (const std::string& link : host.links) {
    const std::size_t colon = std::min(link.find(':'), link.size());
    const std::string name = link.substr(0, colon);
    const auto found = plan.engine_names.find(name);
    if (found == plan.engine_names.end()) {
      return refuse(plan, "links", fmt::format("'{}' is no container of the task", name));
    }
    spec.links.push_back(
        fmt::format("{}:{}", found->second, colon < link.size() ? link.substr(colon + 1) : name));
  }
  for (const core::VolumesFrom& from : host.volumes_from) {
    const auto found = plan.engine_names.find(from.container);
    if (found == plan.engine_names.end()) {
      return refuse(plan, "volumesFrom",
                    fmt::format("'{}' is no container of the task", from.container));
    }
    spec.volumes_from.push_back(found->second + (from.read_only ? ":ro" : ""));
  }
  return {};
}

// The pause container has the network and the shared memory that the others join.
Status add_namespaces(const ContainerPlan& plan, bool has_bridge, ports::ContainerSpec& spec) {
  const bool own_network = plan.network_mode == core::NetworkMode::kAwsvpc;
  if (own_network && !has_bridge) {
    return refuse(plan, "networkMode", "awsvpc needs an engine with a bridge network");
  }
  spec.pid_mode = plan.settings.pid_mode;
  spec.ipc_mode = plan.settings.ipc_mode;
  if (is_pause(plan.container)) {
    spec.network_mode = own_network ? core::NetworkMode::kBridge : core::NetworkMode::kNone;
    spec.pid_mode = core::NamespaceMode::kOwn;
    if (spec.ipc_mode != core::NamespaceMode::kTask) spec.ipc_mode = core::NamespaceMode::kOwn;
    return {};
  }
  const auto pause = plan.engine_names.find(kPauseName);
  if (pause != plan.engine_names.end()) spec.namespace_holder = pause->second;
  return {};
}

}  // namespace

Status add_settings(const ContainerPlan& plan, const std::string& instance_id, bool has_bridge,
                    BuiltSpec& built) {
  ports::ContainerSpec& spec = built.spec;
  if (Status added = add_namespaces(plan, has_bridge, spec); !added) return added;
  const core::ContainerDefinition& definition = plan.container.definition;
  // A task's size is the limit of each of its containers that has none of its own.
  if (spec.memory_mib == 0) spec.memory_mib = plan.settings.memory_mib.value_or(0);
  spec.cpu_limit_units = plan.settings.cpu_units.value_or(0);
  spec.host = definition.host;
  spec.health_check = definition.life.health_check;
  if (plan.network_mode == core::NetworkMode::kBridge) {
    spec.ports = definition.ports;
    const bool needs_bridge = !spec.ports.empty() || !definition.host.links.empty();
    if (spec.network_mode != core::NetworkMode::kBridge && needs_bridge) {
      return refuse(plan, spec.ports.empty() ? "links" : "portMappings",
                    "this engine has no bridge network; give it one, or use networkMode host");
    }
  }
  if (Status added = add_environment_files(plan, spec); !added) return added;
  if (Status added = add_mounts(plan, instance_id, spec); !added) return added;
  return add_siblings(plan, spec);
}

}  // namespace cotenant::agent
