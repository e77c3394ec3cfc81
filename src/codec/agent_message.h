// The frames of the agent protocol: JSON text over one WebSocket, `GET /agent/v1`
// (docs/architecture.md). Level-triggered: hello carries everything the agent sees, a full desired
// everything it should run; both may be sent again at any time.
//
// Decoding is strict about what it needs and lenient about members it does not know, so that agents
// and control planes of neighbouring versions understand each other. Errors: kProtocol, naming the
// member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "codec/stream_message.h"
#include "core/desired.h"
#include "core/instance.h"

namespace cotenant::codec {

inline constexpr int kAgentProtocolVersion = 1;
inline constexpr std::size_t kDesiredFrameBytes = base::limits::kAgentFrameBytes / 2;

// Agent to server, the first frame of a connection.
struct AgentHello {
  int protocol = kAgentProtocolVersion;
  std::string boot_id;
  std::int64_t epoch = 0;  // grows with each connection: the higher one closes the older
  core::InstanceRegistration registration;
  std::vector<core::TaskObservation> observed;
  // Ids of tasks of which a container runs or may come to run, desired or not; some of them suffice.
  std::vector<std::string> running;
};

// Agent to server: tasks whose observation has changed. Sent again until acknowledged.
struct AgentObserved {
  std::int64_t seq = 0;
  std::vector<core::TaskObservation> tasks;
};

// Server to agent. `full`: tasks not named are not desired; else only `removed` ones cease to be.
// A full state that is too large for one frame comes in parts, under consecutive revisions; all but
// the last say that there is `more`, and none counts before the last has come.
struct ServerDesired {
  std::int64_t revision = 0;
  bool full = false;
  std::vector<core::DesiredTask> tasks;
  std::vector<std::string> removed;
  bool more = false;
};

// Server to agent: everything up to `seq` is stored.
struct ServerAck {
  std::int64_t seq = 0;
};

// Server to agent, the last frame: the hello was refused, and why. The agent tries again later.
struct ServerRefused {
  std::string reason;
  // Stop every container first: nothing is reserved for them any more.
  bool stop_containers = false;
  // The instance was deregistered while its agent was there: it does not try again until it is started
  // anew.
  bool leave = false;
};

// Server to agent: open the connection of this stream, and serve it (stream_message.h).
struct ServerStream {
  std::string stream_id;
  std::string container_id;
  StreamRequest request;
};

using AgentMessage = std::variant<AgentHello, AgentObserved>;
using ServerMessage = std::variant<ServerDesired, ServerAck, ServerRefused, ServerStream>;

std::string encode(const AgentMessage& message);
std::string encode(const ServerMessage& message);
// The same, cut into frames of at most about `bytes_max` (but at least one task each), under as many
// consecutive revisions. Changes are cut into changes: each is right by itself.
std::vector<std::string> encode_in_parts(const ServerDesired& desired,
                                         std::size_t bytes_max = kDesiredFrameBytes);
// A bound of what this takes in a frame.
std::size_t encoded_bytes_at_most(const core::TaskObservation& task);
base::Result<AgentMessage> decode_agent_message(std::string_view text);
base::Result<ServerMessage> decode_server_message(std::string_view text);

}  // namespace cotenant::codec
