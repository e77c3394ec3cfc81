// Virtual time: events in order of their moment, then of their scheduling. Not thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.h"

namespace cotenant::sim {

class Scheduler {
 public:
  using Event = std::function<void()>;

  explicit Scheduler(base::TimeMs now_ms) : now_ms_(now_ms) {}

  // Never goes back.
  base::TimeMs now_ms() const { return now_ms_; }
  std::uint64_t events_run() const { return events_run_; }

  void after(base::TimeMs delay_ms, Event event) {
    events_.emplace(Key{now_ms_ + delay_ms, ++scheduled_}, std::move(event));
  }

  void run_until(base::TimeMs until_ms) {
    while (!events_.empty() && events_.begin()->first.first <= until_ms) {
      auto next = events_.extract(events_.begin());
      now_ms_ = next.key().first;
      ++events_run_;
      next.mapped()();
    }
    now_ms_ = until_ms;
  }

 private:
  using Key = std::pair<base::TimeMs, std::uint64_t>;

  base::TimeMs now_ms_;
  std::uint64_t scheduled_ = 0;
  std::uint64_t events_run_ = 0;
  std::map<Key, Event> events_;
};

}  // namespace cotenant::sim
