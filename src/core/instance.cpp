#include "core/instance.h"

#include <algorithm>

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

std::optional<HostPort> port_in_the_way(const Instance& instance,
                                        const std::vector<HostPort>& ports, bool when_empty) {
  // Reserved ports are those of TCP services (registration.h).
  const std::vector<int>& reserved = instance.registration.reserved_ports;
  for (const HostPort& port : ports) {
    const bool is_reserved =
        port.protocol == Protocol::kTcp &&
        std::find(reserved.begin(), reserved.end(), port.port) != reserved.end();
    if (is_reserved || (!when_empty && instance.ports.taken(port))) return port;
  }
  return std::nullopt;
}

const std::string* Instance::find_attribute(const std::string& name) const {
  for (const auto* attributes : {&custom_attributes, &registration.attributes}) {
    const auto found = attributes->find(name);
    if (found != attributes->end()) return &found->second;
  }
  return nullptr;
}

std::map<std::string, std::string> Instance::all_attributes() const {
  std::map<std::string, std::string> all = custom_attributes;
  all.insert(registration.attributes.begin(), registration.attributes.end());
  return all;
}

}  // namespace cotenant::core
