#include "core/instance.h"

namespace cotenant::core {

std::string_view to_string(InstanceStatus status) {
  switch (status) {
    case InstanceStatus::kActive:
      return "ACTIVE";
    case InstanceStatus::kDraining:
      return "DRAINING";
    case InstanceStatus::kInactive:
      return "INACTIVE";
  }
  return "";
}

std::optional<InstanceStatus> parse_instance_status(std::string_view text) {
  for (const InstanceStatus status :
       {InstanceStatus::kActive, InstanceStatus::kDraining, InstanceStatus::kInactive}) {
    if (to_string(status) == text) return status;
  }
  return std::nullopt;
}

}  // namespace cotenant::core
