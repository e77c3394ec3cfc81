// What the agent of an instance should run, and what it reports back. The two halves of the agent
// protocol, as the core sees them: level-triggered, the full state may be exchanged at any time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/gpu_request.h"
#include "core/task.h"
#include "core/task_definition.h"

namespace cotenant::core {

struct DesiredContainer {
  std::string id;  // 32 hex digits, unique: the engine's container carries it as a label
  ContainerDefinition definition;  // overrides already applied
  std::vector<std::string> gpu_uuids;
  // The control plane has seen it run: one that is missing now is gone, not new.
  bool started = false;
};

struct DesiredTask {
  std::string task_id;
  std::string family;
  std::int64_t revision = 0;
  NetworkMode network_mode = NetworkMode::kBridge;
  TaskSettings settings = {};
  // Stop it and report its containers gone.
  bool stop = false;
  std::vector<DesiredContainer> containers;
};

struct ContainerObservation {
  std::string name;
  ContainerStatus status = ContainerStatus::kPending;
  std::optional<int> exit_code;
  std::string reason;
  std::string runtime_id;
  std::string image_digest;
  HealthStatus health = HealthStatus::kUnknown;
  std::vector<NetworkBinding> bindings = {};
  std::string address = {};  // of the task's own network (awsvpc)
  friend bool operator==(const ContainerObservation&, const ContainerObservation&) = default;
};

struct TaskObservation {
  std::string task_id;
  std::vector<ContainerObservation> containers;
  // Of the images that a registry was asked for; 0: not (yet).
  base::TimeMs pull_started_at_ms = 0;
  base::TimeMs pull_stopped_at_ms = 0;
  friend bool operator==(const TaskObservation&, const TaskObservation&) = default;
};

}  // namespace cotenant::core
