#include "agent/stream_peer.h"

#include <chrono>
#include <utility>

namespace cotenant::agent {
namespace {

// A wake-up that was lost costs no more than this.
constexpr std::chrono::seconds kLookAgain{1};

}  // namespace

void StreamPeer::on_open(std::shared_ptr<ports::WebSocket> socket) {
  std::unique_lock lock(mutex_);
  if (!hung_up_) {
    socket_ = std::move(socket);
    changed_.notify_all();
    return;
  }
  lock.unlock();
  socket->close("the agent stops");
}

void StreamPeer::on_text(std::string_view) {
  hang_up("a stream has binary frames only");
}

bool StreamPeer::on_binary(std::string_view data) {
  const base::Result<codec::StreamFrame> frame = codec::decode_stream_frame(data);
  if (!frame) return false;
  const std::lock_guard lock(mutex_);
  input_.push_back({frame->channel, std::string(frame->bytes)});
  input_bytes_ += frame->bytes.size() + 1;
  if (input_bytes_ >= kInputBytesMax && socket_) socket_->set_reading(false);
  changed_.notify_all();
  return true;
}

void StreamPeer::on_drained() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void StreamPeer::on_closed(std::string_view) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    socket_.reset();
    changed_.notify_all();
  }
  ended_.request_stop();
}

bool StreamPeer::send(codec::StreamChannel channel, std::string_view bytes) {
  do {
    const std::string_view part = bytes.substr(0, codec::kStreamFrameBytes);
    bytes.remove_prefix(part.size());
    std::unique_lock lock(mutex_);
    // Who connects has its socket a moment before the listener hears of it.
    while (!closed_ && (!socket_ || socket_->queued_bytes() >= ports::kStreamHighWaterBytes)) {
      changed_.wait_for(lock, kLookAgain);
    }
    if (closed_) return false;
    socket_->send_binary(codec::encode_stream_frame(channel, part));
  } while (!bytes.empty());
  return true;
}

std::optional<StreamPeer::Input> StreamPeer::receive() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !input_.empty(); });
  if (input_.empty()) return std::nullopt;
  Input input = std::move(input_.front());
  input_.pop_front();
  const bool was_full = input_bytes_ >= kInputBytesMax;
  input_bytes_ -= input.bytes.size() + 1;
  if (was_full && input_bytes_ < kInputBytesMax && socket_) socket_->set_reading(true);
  return input;
}

void StreamPeer::end(const codec::StreamEnd& end) {
  send(codec::StreamChannel::kEnd, codec::encode_stream_end(end));
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_; });
  }
}

void StreamPeer::hang_up(std::string reason) {
  std::shared_ptr<ports::WebSocket> socket;
  {
    const std::lock_guard lock(mutex_);
    hung_up_ = true;
    socket = socket_;
  }
  if (socket) socket->close(std::move(reason));
}

}  // namespace cotenant::agent
