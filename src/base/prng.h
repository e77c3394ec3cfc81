// A small seeded generator (SplitMix64): the same seed gives the same ids and choices, so that a
// run can be repeated. Not for secrets.
#pragma once

#include <cstdint>
#include <string>

namespace cotenant::base {

class Prng {
 public:
  explicit Prng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next();

  // 32 lower-case hex digits, the form of ECS's task and container instance ids.
  std::string next_hex_id();

 private:
  std::uint64_t state_;
};

// A seed from the operating system. Only shells call it.
std::uint64_t random_seed();

}  // namespace cotenant::base
