#include "base/prng.h"

#include <fmt/format.h>

#include <random>

namespace cotenant::base {

std::uint64_t Prng::next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return mixed ^ (mixed >> 31);
}

std::string Prng::next_hex_id() {
  const std::uint64_t high = next();
  const std::uint64_t low = next();
  return fmt::format("{:016x}{:016x}", high, low);
}

std::uint64_t random_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace cotenant::base
