// Ports of a container and where the host publishes them. Source: ECS API reference, PortMapping and
// NetworkBinding.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cotenant::core {

enum class Protocol { kTcp, kUdp };
std::string_view to_string(Protocol protocol);  // "tcp", "udp"
std::optional<Protocol> parse_protocol(std::string_view text);

// One port of a machine.
struct HostPort {
  int port = 0;  // 1..65535
  Protocol protocol = Protocol::kTcp;
  friend auto operator<=>(const HostPort&, const HostPort&) = default;
};

struct PortMapping {
  int container_port = 0;  // 1..65535
  int host_port = 0;       // 0: any that is free, chosen by the engine
  Protocol protocol = Protocol::kTcp;
  friend bool operator==(const PortMapping&, const PortMapping&) = default;
};

// Where a mapping ended up, as the engine says.
struct NetworkBinding {
  std::string bind_ip;
  int container_port = 0;
  int host_port = 0;
  Protocol protocol = Protocol::kTcp;
  friend auto operator<=>(const NetworkBinding&, const NetworkBinding&) = default;
};

std::vector<HostPort> ports_of(const std::vector<NetworkBinding>& bindings);

}  // namespace cotenant::core
