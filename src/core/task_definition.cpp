#include "core/task_definition.h"

#include <algorithm>
#include <variant>

namespace cotenant::core {

std::string_view to_string(NetworkMode mode) {
  switch (mode) {
    case NetworkMode::kBridge:
      return "bridge";
    case NetworkMode::kHost:
      return "host";
    case NetworkMode::kNone:
      return "none";
  }
  return "";
}

std::optional<NetworkMode> parse_network_mode(std::string_view text) {
  for (const NetworkMode mode : {NetworkMode::kBridge, NetworkMode::kHost, NetworkMode::kNone}) {
    if (to_string(mode) == text) return mode;
  }
  return std::nullopt;
}

TaskNeed task_need(const TaskDefinition& definition) {
  TaskNeed need;
  for (const ContainerDefinition& container : definition.containers) {
    need.cpu_units += container.cpu_units;
    need.memory_mib += container.memory_reservation_mib.value_or(container.memory_mib.value_or(0));
    if (const auto* shared = std::get_if<SharedGpu>(&container.gpu)) {
      need.gpu.shared_memory_mib += shared->memory_mib;
      ++need.gpu.shared_containers;
    } else if (const auto* whole = std::get_if<WholeGpus>(&container.gpu)) {
      need.gpu.whole_count += whole->count;
      need.gpu.whole_all = need.gpu.whole_all || whole->all;
    }
  }
  return need;
}

const ContainerDefinition* find_container(const TaskDefinition& definition, std::string_view name) {
  const auto found =
      std::find_if(definition.containers.begin(), definition.containers.end(),
                   [&](const ContainerDefinition& container) { return container.name == name; });
  return found == definition.containers.end() ? nullptr : &*found;
}

}  // namespace cotenant::core
