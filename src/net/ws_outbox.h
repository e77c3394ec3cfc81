// Private to net's .cpp files: what waits in a WebSocket to be sent, and the handle by which the
// application sends, closes, and says whether it wants to be sent to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "net/websocket_options.h"
#include "ports/web_socket.h"

namespace cotenant::net {

// What a queued message takes beside its bytes. With it the mark at which a sender waits comes before
// queue_frames does, also when all messages are tiny.
inline constexpr std::size_t kMessageCostBytes = 128;

// RFC 6455, 7.4.1.
inline constexpr std::uint16_t kWsCloseNormal = 1000;
inline constexpr std::uint16_t kWsClosePolicyError = 1008;
inline constexpr std::uint16_t kWsCloseTooBig = 1009;

struct WsFrame {
  std::string data;
  bool is_binary = false;
};

// What senders and the session share. Bounds are checked here, at send(), so that nothing piles up
// on the way to the strand.
struct WsOutbox {
  std::mutex mutex;
  std::deque<WsFrame> frames;
  std::size_t bytes = 0;  // with the one that is being written
  bool above_mark = false;
  bool reading = true;  // what the application wants
  bool ended = false;
  bool urgent = false;  // do not send what is queued
  bool wake_posted = false;
  std::uint16_t code = kWsCloseNormal;
  std::string reason;

  // With the lock held. The first reason counts.
  void end(std::uint16_t close_code, std::string why, bool at_once);
};

// `wake`: has the session look at the outbox, on its strand; nothing once the session is gone. Any thread.
std::shared_ptr<ports::WebSocket> make_ws_handle(std::shared_ptr<WsOutbox> outbox,
                                                 const WebSocketOptions& options,
                                                 std::function<void()> wake);

}  // namespace cotenant::net
