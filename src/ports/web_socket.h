// WebSockets as the shells see them. Implemented by net/.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "ports/http_body.h"

namespace cotenant::ports {

// One side of an open WebSocket. Any thread may call.
class WebSocket {
 public:
  virtual ~WebSocket() = default;
  // Queues one text frame (must be UTF-8); frames go out in order. After close() it does nothing.
  virtual void send(std::string text) = 0;
  virtual void send_binary(std::string data) = 0;
  // Of frames that wait for a slow peer, with a fixed cost for each. A sender that keeps this below kStreamHighWaterBytes and
  // waits for on_drained() beyond it never meets the bound at which the socket is closed.
  virtual std::size_t queued_bytes() const = 0;
  // False: no further frame is taken from the peer until true; frames on their way may still come.
  // The peer is not thought dead meanwhile; that it has left is seen at the next ping or two.
  virtual void set_reading(bool reading) = 0;
  // Closes with this reason (at most 120 bytes go out). on_closed still follows, once.
  virtual void close(std::string reason) = 0;
};

// What a WebSocket tells its owner. Calls of one socket never overlap.
class WebSocketListener {
 public:
  virtual ~WebSocketListener() = default;
  virtual void on_open(std::shared_ptr<WebSocket> socket) = 0;
  virtual void on_text(std::string_view text) = 0;
  // False: this listener takes text only, and the socket is closed.
  virtual bool on_binary(std::string_view) { return false; }
  // What waited to be sent, and had reached kStreamHighWaterBytes, is below half of it again.
  virtual void on_drained() {}
  // The last call. The reason is for a log line.
  virtual void on_closed(std::string_view reason) = 0;
};

}  // namespace cotenant::ports
