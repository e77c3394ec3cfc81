// The server's side of a WebSocket whose peer is a test: it keeps what was sent. Any thread.
//
// It does not call its listener: a test that sees it closed says on_closed() itself, so that the
// listener's calls never overlap, as with a real socket.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ports/http.h"

namespace cotenant::fakes {

class FakeWebSocket final : public ports::WebSocket {
 public:
  struct Seen {
    std::vector<std::string> frames;
    std::optional<std::string> close_reason;
    bool reading = true;  // what the listener wants
    int reading_changes = 0;
    int looks = 0;  // at what is queued
  };

  void send(std::string text) override {
    const std::lock_guard lock(mutex_);
    if (seen_.close_reason) return;
    seen_.frames.push_back(std::move(text));
    changed_.notify_all();
  }
  // Among the frames, like text.
  void send_binary(std::string data) override { send(std::move(data)); }
  std::size_t queued_bytes() const override {
    const std::lock_guard lock(mutex_);
    ++seen_.looks;
    changed_.notify_all();
    return queued_bytes_;
  }
  void set_queued_bytes(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    queued_bytes_ = bytes;
  }
  void set_reading(bool reading) override {
    const std::lock_guard lock(mutex_);
    seen_.reading = reading;
    ++seen_.reading_changes;
    changed_.notify_all();
  }
  void close(std::string reason) override {
    const std::lock_guard lock(mutex_);
    if (!seen_.close_reason) seen_.close_reason = std::move(reason);
    changed_.notify_all();
  }

  Seen seen() const {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

  // What has been seen once `wanted` holds of it, or at the deadline.
  Seen wait_for(const std::function<bool(const Seen&)>& wanted) const {
    constexpr std::chrono::seconds kDeadline{20};
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kDeadline, [&] { return wanted(seen_); });
    return seen_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable Seen seen_;
  std::size_t queued_bytes_ = 0;
};

}  // namespace cotenant::fakes
