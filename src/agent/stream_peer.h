// One stream's connection, as the thread that serves it sees it: sends that wait while the peer is
// slow, what the peer has sent, and a stop token for the end. Private to the agent's streams.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "codec/stream_message.h"
#include "ports/web_socket.h"

namespace cotenant::agent {

class StreamPeer final : public ports::WebSocketListener {
 public:
  // Input that may wait for a program that does not read it; then the peer is not read.
  static constexpr std::size_t kInputBytesMax = 256 * 1024;

  void on_open(std::shared_ptr<ports::WebSocket> socket) override;
  void on_text(std::string_view text) override;
  bool on_binary(std::string_view data) override;
  void on_drained() override;
  void on_closed(std::string_view reason) override;

  // False: the connection has ended.
  bool send(codec::StreamChannel channel, std::string_view bytes = {});
  // The next frame from the peer, with its bytes; nothing at the connection's end.
  struct Input {
    codec::StreamChannel channel;
    std::string bytes;
  };
  std::optional<Input> receive();
  // Sends the end and waits until the peer has hung up: a pager may hold what was sent for hours.
  void end(const codec::StreamEnd& end);
  void hang_up(std::string reason);

  std::stop_token ended() const { return ended_.get_token(); }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::shared_ptr<ports::WebSocket> socket_;
  std::deque<Input> input_;
  std::size_t input_bytes_ = 0;
  bool closed_ = false;
  bool hung_up_ = false;  // maybe before it was open
  std::stop_source ended_;
};

}  // namespace cotenant::agent
