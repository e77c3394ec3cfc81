// A clock that stands still until a test moves it. Any thread.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace cotenant::fakes {

class SettableClock final : public base::Clock {
 public:
  explicit SettableClock(base::TimeMs now_ms) : now_ms_(now_ms) {}

  base::TimeMs now_ms() const override { return now_ms_.load(); }
  void set(base::TimeMs now_ms) { now_ms_.store(now_ms); }
  void advance(base::TimeMs by_ms) { now_ms_.fetch_add(by_ms); }

 private:
  std::atomic<base::TimeMs> now_ms_;
};

}  // namespace cotenant::fakes
