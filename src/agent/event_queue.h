// Events on their way to the agent's loop thread. Bounded: push() waits while it is full, so that a
// server which sends faster than the agent works is slowed down and nothing is lost.
//
// Any thread pushes, except the loop's own; the loop thread takes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

namespace cotenant::agent {

class EventQueue {
 public:
  using Event = std::function<void()>;
  static constexpr std::size_t kCapacity = 1024;

  // False: the queue is closed, the event is dropped.
  bool push(Event event) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return closed_ || events_.size() < kCapacity; });
    if (closed_) return false;
    events_.push_back(std::move(event));
    work_.notify_one();
    return true;
  }

  // All that is there; waits for the first one at most `timeout`.
  std::deque<Event> take(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    work_.wait_for(lock, timeout, [&] { return closed_ || !events_.empty(); });
    std::deque<Event> taken = std::exchange(events_, {});
    room_.notify_all();
    return taken;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    work_.notify_all();
    room_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  std::deque<Event> events_;
  bool closed_ = false;
};

}  // namespace cotenant::agent
