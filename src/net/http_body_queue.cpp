#include "net/http_body_queue.h"

#include <fmt/format.h>

#include <utility>

namespace cotenant::net {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} * 1024;

}  // namespace

// With the lock held.
bool HttpBodyQueue::wake() {
  return !std::exchange(wake_posted_, true);
}

bool HttpBodyQueue::write(std::string piece) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen || piece.empty()) return false;
  if (bytes_ + piece.size() > ports::kStreamQueueBytesMax) {
    state_ = State::kBroken;
    is_overflow_ = true;
    reason_ = fmt::format("the peer reads too slowly: {} bytes wait for it", bytes_);
    pieces_.clear();
    // Always told: an earlier wake-up may have met a chunk on its way, which this peer never takes.
    wake_posted_ = true;
    return true;
  }
  bytes_ += piece.size();
  above_mark_ = above_mark_ || bytes_ >= ports::kStreamHighWaterBytes;
  pieces_.push_back(std::move(piece));
  return wake();
}

bool HttpBodyQueue::finish() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) return false;
  state_ = State::kFinished;
  return wake();
}

bool HttpBodyQueue::abort(std::string reason) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen) return false;
  state_ = State::kBroken;
  reason_ = std::move(reason);
  return wake();
}

std::size_t HttpBodyQueue::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

HttpBodyQueue::Next HttpBodyQueue::take() {
  const std::lock_guard lock(mutex_);
  wake_posted_ = false;
  Next next;
  while (!pieces_.empty() && next.data.size() < kChunkBytes) {
    if (next.data.empty()) {
      next.data = std::move(pieces_.front());
    } else {
      next.data += pieces_.front();
    }
    pieces_.pop_front();
  }
  if (!next.data.empty()) return next;
  next.is_last = state_ == State::kFinished;
  if (state_ == State::kBroken) next.broken = reason_;
  return next;
}

std::optional<std::string> HttpBodyQueue::overflow() const {
  const std::lock_guard lock(mutex_);
  if (!is_overflow_ || state_ == State::kClosed) return std::nullopt;
  return reason_;
}

bool HttpBodyQueue::written(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
  if (!above_mark_ || bytes_ >= ports::kStreamHighWaterBytes / 2) return false;
  above_mark_ = false;
  return state_ == State::kOpen;
}

void HttpBodyQueue::close() {
  const std::lock_guard lock(mutex_);
  state_ = State::kClosed;
  pieces_.clear();
  bytes_ = 0;
}

}  // namespace cotenant::net
