// All chance of a run comes from here, so that a seed says everything.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"

namespace cotenant::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : prng_(seed) {}

  std::uint64_t next() { return prng_.next(); }
  // 0 .. bound - 1.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(prng_.next() % static_cast<std::uint64_t>(bound));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool per_mille(std::int64_t chance) { return below(1000) < chance; }
  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(list.size())))];
  }

 private:
  base::Prng prng_;
};

}  // namespace cotenant::sim
