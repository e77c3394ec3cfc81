#include "core/task_definition.h"

#include <algorithm>

namespace cotenant::core {

std::string_view to_string(NetworkMode mode) {
  switch (mode) {
    case NetworkMode::kBridge:
      return "bridge";
    case NetworkMode::kHost:
      return "host";
    case NetworkMode::kNone:
      return "none";
    case NetworkMode::kAwsvpc:
      return "awsvpc";
  }
  return "";
}

std::optional<NetworkMode> parse_network_mode(std::string_view text) {
  for (const NetworkMode mode :
       {NetworkMode::kBridge, NetworkMode::kHost, NetworkMode::kNone, NetworkMode::kAwsvpc}) {
    if (to_string(mode) == text) return mode;
  }
  return std::nullopt;
}

std::string_view to_string(TaskDefinitionStatus status) {
  switch (status) {
    case TaskDefinitionStatus::kActive:
      return "ACTIVE";
    case TaskDefinitionStatus::kInactive:
      return "INACTIVE";
    case TaskDefinitionStatus::kDeleteInProgress:
      return "DELETE_IN_PROGRESS";
  }
  return "";
}

std::optional<TaskDefinitionStatus> parse_task_definition_status(std::string_view text) {
  for (const TaskDefinitionStatus status :
       {TaskDefinitionStatus::kActive, TaskDefinitionStatus::kInactive,
        TaskDefinitionStatus::kDeleteInProgress}) {
    if (to_string(status) == text) return status;
  }
  return std::nullopt;
}

const ContainerDefinition* find_container(const TaskDefinition& definition, std::string_view name) {
  const auto found =
      std::find_if(definition.containers.begin(), definition.containers.end(),
                   [&](const ContainerDefinition& container) { return container.name == name; });
  return found == definition.containers.end() ? nullptr : &*found;
}

}  // namespace cotenant::core
