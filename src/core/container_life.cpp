#include "core/container_life.h"

namespace cotenant::core {

std::string_view to_string(DependencyCondition condition) {
  switch (condition) {
    case DependencyCondition::kStart:
      return "START";
    case DependencyCondition::kComplete:
      return "COMPLETE";
    case DependencyCondition::kSuccess:
      return "SUCCESS";
    case DependencyCondition::kHealthy:
      return "HEALTHY";
  }
  return "";
}

std::optional<DependencyCondition> parse_dependency_condition(std::string_view text) {
  for (const auto condition : {DependencyCondition::kStart, DependencyCondition::kComplete,
                               DependencyCondition::kSuccess, DependencyCondition::kHealthy}) {
    if (to_string(condition) == text) return condition;
  }
  return std::nullopt;
}

std::string_view to_string(HealthStatus status) {
  switch (status) {
    case HealthStatus::kUnknown:
      return "UNKNOWN";
    case HealthStatus::kHealthy:
      return "HEALTHY";
    case HealthStatus::kUnhealthy:
      return "UNHEALTHY";
  }
  return "";
}

std::optional<HealthStatus> parse_health_status(std::string_view text) {
  for (const auto status :
       {HealthStatus::kUnknown, HealthStatus::kHealthy, HealthStatus::kUnhealthy}) {
    if (to_string(status) == text) return status;
  }
  return std::nullopt;
}

}  // namespace cotenant::core
