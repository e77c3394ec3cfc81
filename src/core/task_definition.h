// A registered task definition, as far as cotenant carries it out. What it only stores and shows
// again stands in `document`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "core/container_host.h"
#include "core/container_life.h"
#include "core/gpu_request.h"
#include "core/port_mapping.h"
#include "core/query/query.h"
#include "core/tags.h"
#include "core/task_settings.h"

namespace cotenant::core {

// kAwsvpc: the containers of a task have one network of their own, with one address.
enum class NetworkMode { kBridge, kHost, kNone, kAwsvpc };
std::string_view to_string(NetworkMode mode);  // "bridge", "host", "none", "awsvpc"
std::optional<NetworkMode> parse_network_mode(std::string_view text);

// Spellings: ECS API reference, TaskDefinition.status.
enum class TaskDefinitionStatus { kActive, kInactive, kDeleteInProgress };
std::string_view to_string(TaskDefinitionStatus status);
std::optional<TaskDefinitionStatus> parse_task_definition_status(std::string_view text);

struct EnvironmentVariable {
  std::string name;
  std::string value;
  friend bool operator==(const EnvironmentVariable&, const EnvironmentVariable&) = default;
};

struct ContainerDefinition {
  std::string name;
  std::string image;
  std::int64_t cpu_units = 0;  // 1024 = one vCPU; a weight, and the reservation
  std::optional<std::int64_t> memory_mib;
  std::optional<std::int64_t> memory_reservation_mib;
  bool essential = true;
  std::vector<std::string> entry_point;
  std::vector<std::string> command;
  std::vector<EnvironmentVariable> environment;
  std::string working_directory;
  std::optional<std::int64_t> stop_timeout_s;
  std::map<std::string, std::string> docker_labels;
  GpuRequest gpu;
  std::vector<PortMapping> ports = {};
  HostSettings host = {};
  LifeSettings life = {};
};

struct TaskDefinition {
  std::string family;
  std::int64_t revision = 0;
  base::TimeMs registered_at_ms = 0;
  TaskDefinitionStatus status = TaskDefinitionStatus::kActive;
  base::TimeMs deregistered_at_ms = 0;      // 0: it is ACTIVE
  base::TimeMs delete_requested_at_ms = 0;  // 0: not yet
  Tags tags = {};
  NetworkMode network_mode = NetworkMode::kBridge;
  std::vector<ContainerDefinition> containers;
  TaskSettings settings = {};
  std::vector<Query> member_of = {};  // its placement constraints
  // The registered document (JSON) as it is shown again. The core never reads it.
  std::string document;
  // What the registration warned about.
  std::vector<std::string> warnings;
};

// What a task of this definition reserves on an instance. CPU and memory: the task's own where given,
// else the sum of its containers'; of each, memoryReservation where given, else memory (ECS API
// reference, ContainerDefinition).
struct TaskNeed {
  std::int64_t cpu_units = 0;
  std::int64_t memory_mib = 0;
  TaskGpuNeed gpu;
  std::vector<HostPort> ports = {};  // of the instance, that the definition names
};

// Of a task that has no overrides (container_override.h).
TaskNeed task_need(const TaskDefinition& definition);

const ContainerDefinition* find_container(const TaskDefinition& definition, std::string_view name);

}  // namespace cotenant::core
