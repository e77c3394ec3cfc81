#include "core/port_mapping.h"

namespace cotenant::core {

std::string_view to_string(Protocol protocol) {
  return protocol == Protocol::kTcp ? "tcp" : "udp";
}

std::optional<Protocol> parse_protocol(std::string_view text) {
  for (const Protocol protocol : {Protocol::kTcp, Protocol::kUdp}) {
    if (to_string(protocol) == text) return protocol;
  }
  return std::nullopt;
}

std::vector<HostPort> ports_of(const std::vector<NetworkBinding>& bindings) {
  std::vector<HostPort> ports;
  for (const NetworkBinding& binding : bindings) {
    ports.push_back({binding.host_port, binding.protocol});
  }
  return ports;
}

}  // namespace cotenant::core
