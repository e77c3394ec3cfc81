#include "core/task.h"

#include <array>
#include <utility>

namespace cotenant::core {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, std::string_view>, N>;

constexpr Names<TaskStatus, 4> kTaskStatusNames{{{TaskStatus::kPending, "PENDING"},
                                                 {TaskStatus::kRunning, "RUNNING"},
                                                 {TaskStatus::kStopping, "STOPPING"},
                                                 {TaskStatus::kStopped, "STOPPED"}}};
constexpr Names<ContainerStatus, 3> kContainerStatusNames{{{ContainerStatus::kPending, "PENDING"},
                                                           {ContainerStatus::kRunning, "RUNNING"},
                                                           {ContainerStatus::kStopped, "STOPPED"}}};
constexpr Names<DesiredStatus, 2> kDesiredStatusNames{
    {{DesiredStatus::kRunning, "RUNNING"}, {DesiredStatus::kStopped, "STOPPED"}}};
constexpr Names<StopCode, 5> kStopCodeNames{
    {{StopCode::kNone, ""},
     {StopCode::kTaskFailedToStart, "TaskFailedToStart"},
     {StopCode::kEssentialContainerExited, "EssentialContainerExited"},
     {StopCode::kUserInitiated, "UserInitiated"},
     {StopCode::kTerminationNotice, "TerminationNotice"}}};

template <class Enum, std::size_t N>
std::string_view name_of(const Names<Enum, N>& names, Enum value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "";
}

template <class Enum, std::size_t N>
std::optional<Enum> value_of(const Names<Enum, N>& names, std::string_view text) {
  for (const auto& [value, name] : names) {
    if (name == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(TaskStatus status) {
  return name_of(kTaskStatusNames, status);
}
std::string_view to_string(ContainerStatus status) {
  return name_of(kContainerStatusNames, status);
}
std::string_view to_string(DesiredStatus status) {
  return name_of(kDesiredStatusNames, status);
}
std::string_view to_string(StopCode code) {
  return name_of(kStopCodeNames, code);
}

std::optional<TaskStatus> parse_task_status(std::string_view text) {
  return value_of(kTaskStatusNames, text);
}
std::optional<ContainerStatus> parse_container_status(std::string_view text) {
  return value_of(kContainerStatusNames, text);
}
std::optional<DesiredStatus> parse_desired_status(std::string_view text) {
  return value_of(kDesiredStatusNames, text);
}
std::optional<StopCode> parse_stop_code(std::string_view text) {
  return value_of(kStopCodeNames, text);
}

HealthStatus task_health(const Task& task, const TaskDefinition& definition) {
  HealthStatus health = HealthStatus::kUnknown;
  bool all_healthy = true;
  for (const TaskContainer& container : task.containers) {
    const ContainerDefinition* part = find_container(definition, container.name);
    if (part == nullptr || !part->essential || !part->life.health_check) continue;
    if (container.health == HealthStatus::kUnhealthy) return HealthStatus::kUnhealthy;
    all_healthy = all_healthy && container.health == HealthStatus::kHealthy;
    if (all_healthy) health = HealthStatus::kHealthy;
  }
  return all_healthy ? health : HealthStatus::kUnknown;
}

TaskContainer* find_container(Task& task, std::string_view name) {
  for (TaskContainer& container : task.containers) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

}  // namespace cotenant::core
