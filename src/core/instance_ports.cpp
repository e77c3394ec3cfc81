#include "core/instance_ports.h"

#include <iterator>

namespace cotenant::core {

void InstancePorts::hold(const std::string& task_id, const std::vector<HostPort>& ports) {
  for (const HostPort& port : ports) holders_[port].insert(task_id);
}

void InstancePorts::release(const std::string& task_id) {
  for (auto at = holders_.begin(); at != holders_.end();) {
    at->second.erase(task_id);
    at = at->second.empty() ? holders_.erase(at) : std::next(at);
  }
}

std::string InstancePorts::holder(const HostPort& port) const {
  const auto found = holders_.find(port);
  return found == holders_.end() ? std::string() : *found->second.begin();
}

std::vector<int> InstancePorts::taken(Protocol protocol) const {
  std::vector<int> ports;
  for (const auto& [port, tasks] : holders_) {
    if (port.protocol == protocol) ports.push_back(port.port);
  }
  return ports;
}

}  // namespace cotenant::core
