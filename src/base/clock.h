// Time as the core sees it: milliseconds since the Unix epoch, handed in, never read.
#pragma once

#include <cstdint>

namespace cotenant::base {

using TimeMs = std::int64_t;

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time. May jump; only shells call it.
  virtual TimeMs now_ms() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimeMs now_ms() const override;
};

}  // namespace cotenant::base
