// When a container starts, whether it is well, and whether it starts again. The agent carries it
// out (agent/start_order.h). Source: ECS API reference, ContainerDependency, HealthCheck,
// ContainerRestartPolicy, ContainerDefinition.startTimeout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cotenant::core {

enum class DependencyCondition { kStart, kComplete, kSuccess, kHealthy };
std::string_view to_string(DependencyCondition condition);  // "START", ...
std::optional<DependencyCondition> parse_dependency_condition(std::string_view text);

struct Dependency {
  std::string container;  // of the same task
  DependencyCondition condition = DependencyCondition::kStart;
  friend bool operator==(const Dependency&, const Dependency&) = default;
};

// Run by the engine, inside the container.
struct HealthCheck {
  std::vector<std::string> command;  // the first word is CMD or CMD-SHELL
  std::int64_t interval_s = 30;      // 5..300
  std::int64_t timeout_s = 5;        // 2..60
  std::int64_t retries = 3;          // 1..10
  std::int64_t start_period_s = 0;   // 0..300
  friend bool operator==(const HealthCheck&, const HealthCheck&) = default;
};

enum class HealthStatus { kUnknown, kHealthy, kUnhealthy };
std::string_view to_string(HealthStatus status);  // "UNKNOWN", "HEALTHY", "UNHEALTHY"
std::optional<HealthStatus> parse_health_status(std::string_view text);

// A container that exits is started again when it had run for the attempt period.
struct RestartPolicy {
  std::vector<std::int64_t> ignored_exit_codes;
  std::int64_t attempt_period_s = 300;  // 60..1800
  friend bool operator==(const RestartPolicy&, const RestartPolicy&) = default;
};

struct LifeSettings {
  std::vector<Dependency> depends_on;
  // How long others wait for this container to become what they depend on; none: for ever.
  std::optional<std::int64_t> start_timeout_s;
  std::optional<HealthCheck> health_check;
  std::optional<RestartPolicy> restart;  // none: it is not started again
  friend bool operator==(const LifeSettings&, const LifeSettings&) = default;
};

}  // namespace cotenant::core
