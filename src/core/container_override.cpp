#include "core/container_override.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "core/tenant_rules.h"

namespace cotenant::core {
namespace {

base::Status wrong_override(std::size_t index, std::string_view member, std::string_view text) {
  return base::fail(base::ErrorCode::kInvalidParameter,
                    fmt::format("overrides.containerOverrides[{}].{}: {}", index, member, text));
}

base::Status check_override_names(const TaskDefinition& definition,
                                  const std::vector<ContainerOverride>& overrides) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    if (find_container(definition, overrides[i].name) == nullptr) {
      std::string names;
      for (const ContainerDefinition& container : definition.containers) {
        names += (names.empty() ? "" : ", ") + container.name;
      }
      return wrong_override(
          i, "name",
          fmt::format("'{}' is no container of {}:{}, which has {}", overrides[i].name,
                      definition.family, definition.revision, names));
    }
    if (!seen.insert(overrides[i].name).second) {
      return wrong_override(
          i, "name", fmt::format("'{}' stands twice; merge them into one", overrides[i].name));
    }
  }
  return {};
}

base::Status check_override_memory(const TaskDefinition& definition,
                                   const std::vector<ContainerOverride>& overrides) {
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    const ContainerOverride& entry = overrides[i];
    if (!entry.memory_mib && !entry.memory_reservation_mib) continue;
    const ContainerDefinition& part = *find_container(definition, entry.name);
    const auto memory_mib = entry.memory_mib ? entry.memory_mib : part.memory_mib;
    const auto reservation_mib =
        entry.memory_reservation_mib ? entry.memory_reservation_mib : part.memory_reservation_mib;
    if (memory_mib && reservation_mib && *reservation_mib > *memory_mib) {
      return wrong_override(
          i, entry.memory_mib ? "memory" : "memoryReservation",
          fmt::format("container '{}' would have a memoryReservation of {} MiB and a memory of {} "
                      "MiB; the reservation must not be more",
                      entry.name, *reservation_mib, *memory_mib));
    }
  }
  return {};
}

// ECS API reference, ResourceRequirement: all containers of a task use the same option.
base::Status check_override_gpus(const TaskDefinition& definition,
                                 const std::vector<ContainerOverride>& overrides) {
  std::optional<std::size_t> overridden;
  for (std::size_t i = 0; i < overrides.size(); ++i) {
    if (overrides[i].gpu) overridden = i;
  }
  if (!overridden) return {};
  int shared = 0;
  int whole = 0;
  bool all = false;
  for (const ContainerDefinition& part : definition.containers) {
    const GpuRequest& request = gpu_request(part, overrides);
    if (std::holds_alternative<SharedGpu>(request)) ++shared;
    if (const auto* gpus = std::get_if<WholeGpus>(&request)) {
      ++whole;
      all = all || gpus->all;
    }
  }
  constexpr std::string_view kMember = "resourceRequirements[0]";
  if (shared > 0 && whole > 0) {
    return wrong_override(
        *overridden, kMember,
        "some containers of the task would share a GPU and others take whole ones; "
        "all must use the same option, sharingStrategy or value");
  }
  if (all && whole > 1) {
    return wrong_override(*overridden, kMember,
                          "ALL takes every GPU of the instance, so no other container of the task "
                          "can have one; give counts instead");
  }
  if (shared > 0 && definition.network_mode == NetworkMode::kHost) {
    return wrong_override(
        *overridden, kMember,
        "sharing a GPU is not possible with networkMode host, from which a tenant "
        "would reach the control plane");
  }
  if (shared == 0) return {};
  if (auto status = check_tenant(definition); !status) {
    return wrong_override(
        *overridden, kMember,
        "shares a GPU, which this definition does not permit: " + status.error().message);
  }
  return {};
}

// A port of the instance is needed where the definition names it; with the host's network every port
// is the instance's own.
void add_ports(NetworkMode mode, const std::vector<PortMapping>& mappings, TaskNeed& need) {
  if (mode != NetworkMode::kBridge && mode != NetworkMode::kHost) return;
  for (const PortMapping& mapping : mappings) {
    const int port = mode == NetworkMode::kHost ? mapping.container_port : mapping.host_port;
    if (port != 0) need.ports.push_back({port, mapping.protocol});
  }
}

}  // namespace

const ContainerOverride* find_override(const std::vector<ContainerOverride>& overrides,
                                       std::string_view container) {
  const auto found =
      std::find_if(overrides.rbegin(), overrides.rend(),
                   [&](const ContainerOverride& entry) { return entry.name == container; });
  return found == overrides.rend() ? nullptr : &*found;
}

const GpuRequest& gpu_request(const ContainerDefinition& container,
                              const std::vector<ContainerOverride>& overrides) {
  const ContainerOverride* entry = find_override(overrides, container.name);
  return entry != nullptr && entry->gpu ? *entry->gpu : container.gpu;
}

ContainerDefinition with_override(ContainerDefinition definition,
                                  const std::vector<ContainerOverride>& overrides) {
  for (const ContainerOverride& entry : overrides) {
    if (entry.name != definition.name) continue;
    if (entry.command) definition.command = *entry.command;
    if (entry.cpu_units) definition.cpu_units = *entry.cpu_units;
    if (entry.memory_mib) definition.memory_mib = entry.memory_mib;
    if (entry.memory_reservation_mib) {
      definition.memory_reservation_mib = entry.memory_reservation_mib;
    }
    if (entry.gpu) definition.gpu = *entry.gpu;
    if (entry.environment_files) definition.host.environment_files = *entry.environment_files;
    for (const EnvironmentVariable& variable : entry.environment) {
      const auto same = std::find_if(
          definition.environment.begin(), definition.environment.end(),
          [&](const EnvironmentVariable& existing) { return existing.name == variable.name; });
      if (same == definition.environment.end()) {
        definition.environment.push_back(variable);
      } else {
        same->value = variable.value;
      }
    }
  }
  return definition;
}

TaskNeed task_need(const TaskDefinition& definition,
                   const std::vector<ContainerOverride>& overrides) {
  TaskNeed need;
  for (const ContainerDefinition& part : definition.containers) {
    add_ports(definition.network_mode, part.ports, need);
    const ContainerOverride* entry = find_override(overrides, part.name);
    const auto either = [&](std::optional<std::int64_t> ContainerOverride::*member,
                            std::optional<std::int64_t> registered) {
      return entry != nullptr && entry->*member ? entry->*member : registered;
    };
    need.cpu_units += either(&ContainerOverride::cpu_units, part.cpu_units).value_or(0);
    const auto memory_mib = either(&ContainerOverride::memory_mib, part.memory_mib);
    const auto reservation_mib =
        either(&ContainerOverride::memory_reservation_mib, part.memory_reservation_mib);
    need.memory_mib += reservation_mib.value_or(memory_mib.value_or(0));
    const GpuRequest& gpu = gpu_request(part, overrides);
    if (const auto* shared = std::get_if<SharedGpu>(&gpu)) {
      need.gpu.shared_memory_mib += shared->memory_mib;
      ++need.gpu.shared_containers;
    } else if (const auto* whole = std::get_if<WholeGpus>(&gpu)) {
      need.gpu.whole_count += whole->count;
      need.gpu.whole_all = need.gpu.whole_all || whole->all;
    }
  }
  need.cpu_units = definition.settings.cpu_units.value_or(need.cpu_units);
  need.memory_mib = definition.settings.memory_mib.value_or(need.memory_mib);
  return need;
}

TaskNeed task_need(const TaskDefinition& definition) {
  return task_need(definition, {});
}

base::Status check_overrides(const TaskDefinition& definition,
                             const std::vector<ContainerOverride>& overrides) {
  if (auto status = check_override_names(definition, overrides); !status) return status;
  if (auto status = check_override_memory(definition, overrides); !status) return status;
  return check_override_gpus(definition, overrides);
}

}  // namespace cotenant::core
