#include "server/stream_relay.h"

#include <utility>

namespace cotenant::server {

class StreamRelay::Listener final : public ports::WebSocketListener {
 public:
  Listener(std::shared_ptr<StreamRelay> relay, Side side) : relay_(std::move(relay)), side_(side) {}
  // A handshake that fails ends in no call.
  ~Listener() override {
    if (!opened_) relay_->close("the other side's connection has failed");
  }

  void on_open(std::shared_ptr<ports::WebSocket> socket) override {
    opened_ = true;
    relay_->opened(side_, std::move(socket));
  }
  void on_text(std::string_view) override { relay_->close("a stream has binary frames only"); }
  bool on_binary(std::string_view data) override { return relay_->pass(side_, data); }
  void on_drained() override { relay_->drained(side_); }
  void on_closed(std::string_view reason) override { relay_->closed(side_, reason); }

 private:
  const std::shared_ptr<StreamRelay> relay_;
  const Side side_;
  bool opened_ = false;
};

std::shared_ptr<ports::WebSocketListener> StreamRelay::listener(Side side) {
  return std::make_shared<Listener>(shared_from_this(), side);
}

bool StreamRelay::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

void StreamRelay::opened(Side side, std::shared_ptr<ports::WebSocket> socket) {
  std::unique_lock lock(mutex_);
  if (over_) {
    lock.unlock();
    return socket->close("the stream has ended");
  }
  sockets_[side] = std::move(socket);
  const Side other = side == kClient ? kAgent : kClient;
  if (!sockets_[other]) return sockets_[side]->set_reading(false);
  for (std::string& frame : early_frames_) sockets_[side]->send_binary(std::move(frame));
  early_frames_.clear();
  sockets_[other]->set_reading(true);
}

bool StreamRelay::pass(Side from, std::string_view frame) {
  const Side to = from == kClient ? kAgent : kClient;
  const std::lock_guard lock(mutex_);
  if (over_) return true;
  if (!sockets_[to]) {
    // It was on its way before reading was turned off.
    early_bytes_ += frame.size();
    if (early_bytes_ > kEarlyBytesMax) return false;
    early_frames_.emplace_back(frame);
    return true;
  }
  sockets_[to]->send_binary(std::string(frame));
  // Under the lock, so that the drain which ends this comes after it.
  if (sockets_[from] && sockets_[to]->queued_bytes() >= ports::kStreamHighWaterBytes) {
    sockets_[from]->set_reading(false);
  }
  return true;
}

void StreamRelay::drained(Side side) {
  const std::lock_guard lock(mutex_);
  const Side other = side == kClient ? kAgent : kClient;
  if (sockets_[other]) sockets_[other]->set_reading(true);
}

void StreamRelay::closed(Side side, std::string_view reason) {
  {
    const std::lock_guard lock(mutex_);
    sockets_[side].reset();
  }
  close(std::string(reason));
}

void StreamRelay::close(const std::string& reason) {
  std::array<std::shared_ptr<ports::WebSocket>, 2> left;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    left = sockets_;
    early_frames_.clear();
  }
  for (const auto& socket : left) {
    if (socket) socket->close(reason);
  }
}

}  // namespace cotenant::server
