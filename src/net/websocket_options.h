// Times and bounds of one WebSocket, the same for both sides (docs/architecture.md: ping every 5 s, dead after 15
// s).
#pragma once

#include <chrono>
#include <cstddef>

#include "base/limits.h"

namespace cotenant::net {

struct WebSocketOptions {
  std::chrono::milliseconds handshake_timeout{5000};
  std::chrono::milliseconds ping_interval{5000};
  // Without any byte from the peer for this long the connection counts as dead. Must be larger than
  // the peer's ping_interval.
  std::chrono::milliseconds dead_after{15000};
  // For the queue's last frames and the closing handshake after close().
  std::chrono::milliseconds close_timeout{2000};
  // A larger message, in or out, closes the socket.
  std::size_t frame_bytes = base::limits::kAgentFrameBytes;
  // What send() may hold for a slow peer. Beyond it the socket is closed: no message is ever left
  // out.
  std::size_t queue_bytes = 4 * base::limits::kAgentFrameBytes;
  std::size_t queue_frames = 4096;
};

}  // namespace cotenant::net
