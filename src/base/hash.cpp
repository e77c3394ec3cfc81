#include "base/hash.h"

#include <fmt/format.h>

namespace cotenant::base {

std::uint64_t fnv1a(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = seed;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

std::string digest_hex(std::string_view text) {
  const std::uint64_t first = fnv1a(text);
  return fmt::format("{:016x}{:016x}", first, fnv1a(text, ~first));
}

}  // namespace cotenant::base
