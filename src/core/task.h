// A task and its containers: status ladders, stop codes, reasons. Spellings: ECS API reference,
// Task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "core/tags.h"
#include "core/task_definition.h"

namespace cotenant::core {

// Only the rungs that an EC2-type task without load balancer or network interface passes.
enum class TaskStatus { kPending, kRunning, kStopping, kStopped };
enum class ContainerStatus { kPending, kRunning, kStopped };
enum class DesiredStatus { kRunning, kStopped };
enum class StopCode {
  kNone,
  kTaskFailedToStart,
  kEssentialContainerExited,
  kUserInitiated,
  kTerminationNotice,  // its instance was deregistered with force
};

std::string_view to_string(TaskStatus status);       // "PENDING", "RUNNING", "STOPPING", "STOPPED"
std::string_view to_string(ContainerStatus status);  // "PENDING", "RUNNING", "STOPPED"
std::string_view to_string(DesiredStatus status);    // "RUNNING", "STOPPED"
std::string_view to_string(StopCode code);           // "" or ECS's spelling
std::optional<TaskStatus> parse_task_status(std::string_view text);
std::optional<ContainerStatus> parse_container_status(std::string_view text);
std::optional<DesiredStatus> parse_desired_status(std::string_view text);
std::optional<StopCode> parse_stop_code(std::string_view text);

struct TaskContainer {
  std::string name;
  std::string id;  // 32 hex digits, the last part of its ARN
  ContainerStatus status = ContainerStatus::kPending;
  std::optional<int> exit_code;
  std::string reason;
  std::string runtime_id;
  std::string image_digest;
  std::vector<std::string> gpu_uuids;
  HealthStatus health = HealthStatus::kUnknown;  // as the engine last said
  std::vector<NetworkBinding> bindings = {};     // likewise
  std::string address = {};                      // likewise, with networkMode awsvpc
};

struct ContainerOverride {
  std::string name;
  std::optional<std::vector<std::string>> command;
  std::vector<EnvironmentVariable> environment;  // added to, or in place of, the definition's
  // In place of the definition's.
  std::optional<std::int64_t> cpu_units = {};
  std::optional<std::int64_t> memory_mib = {};
  std::optional<std::int64_t> memory_reservation_mib = {};
  std::optional<GpuRequest> gpu = {};
  std::optional<std::vector<std::string>> environment_files = {};  // paths on the instance
  friend bool operator==(const ContainerOverride&, const ContainerOverride&) = default;
};

struct Task {
  std::string id;
  std::string cluster;
  std::string instance_id;
  std::string family;
  std::int64_t revision = 0;
  std::string group;
  std::string started_by;
  std::vector<ContainerOverride> overrides;
  std::vector<TaskContainer> containers;
  Tags tags = {};

  TaskStatus last_status = TaskStatus::kPending;
  DesiredStatus desired_status = DesiredStatus::kRunning;
  StopCode stop_code = StopCode::kNone;
  std::string stopped_reason;
  std::int64_t version = 1;

  base::TimeMs created_at_ms = 0;
  base::TimeMs pull_started_at_ms = 0;       // 0: no registry was asked for an image (yet)
  base::TimeMs pull_stopped_at_ms = 0;       // 0: not yet
  base::TimeMs started_at_ms = 0;            // 0: not yet
  base::TimeMs stopping_at_ms = 0;           // 0: not yet
  base::TimeMs execution_stopped_at_ms = 0;  // 0: not yet
  base::TimeMs stopped_at_ms = 0;            // 0: not yet
};

// Whether the task holds its reservation: until the agent has reported every container gone,
// whatever was asked for in the meantime.
inline bool holds_reservation(const Task& task) {
  return task.last_status != TaskStatus::kStopped;
}

// Of the essential containers with a health check: UNHEALTHY when one is, HEALTHY when all are, else
// UNKNOWN. Source: ECS API reference, Task.healthStatus.
HealthStatus task_health(const Task& task, const TaskDefinition& definition);

TaskContainer* find_container(Task& task, std::string_view name);

}  // namespace cotenant::core
