// Back-off after failures: 1 s, doubled each time, at most 60 s. A value; pure.
#pragma once

#include <algorithm>

#include "base/clock.h"

namespace cotenant::agent {

class Retry {
 public:
  bool due(base::TimeMs now_ms) const { return now_ms >= next_at_ms_; }
  void failed(base::TimeMs now_ms) {
    next_at_ms_ = now_ms + std::min<base::TimeMs>(60'000, base::TimeMs{1000} << failures_);
    failures_ = std::min(failures_ + 1, 6);
  }
  void reset() { *this = Retry(); }

 private:
  int failures_ = 0;
  base::TimeMs next_at_ms_ = 0;
};

}  // namespace cotenant::agent
