#include "base/clock.h"

#include <chrono>

namespace cotenant::base {

TimeMs SystemClock::now_ms() const {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
}

}  // namespace cotenant::base
