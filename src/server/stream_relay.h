// One stream of logs or exec in the control plane: passes frames between the client's connection
// and the agent's, unread, as fast as the slower of the two takes them. Either end that goes takes
// the other along. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ports/web_socket.h"

namespace cotenant::server {

class StreamRelay : public std::enable_shared_from_this<StreamRelay> {
 public:
  enum Side : std::size_t { kClient = 0, kAgent = 1 };
  // What a side may have sent before the other has come.
  static constexpr std::size_t kEarlyBytesMax = 1024 * 1024;

  // For the side's WebSocket. Once for each; one that goes before it was open takes the other along.
  std::shared_ptr<ports::WebSocketListener> listener(Side side);
  void close(const std::string& reason);
  bool is_over() const;

 private:
  class Listener;

  void opened(Side side, std::shared_ptr<ports::WebSocket> socket);
  bool pass(Side from, std::string_view frame);
  void drained(Side side);
  void closed(Side side, std::string_view reason);

  mutable std::mutex mutex_;  // guards what follows
  std::array<std::shared_ptr<ports::WebSocket>, 2> sockets_;
  std::vector<std::string> early_frames_;  // of the side that came first
  std::size_t early_bytes_ = 0;
  bool over_ = false;
};

}  // namespace cotenant::server
