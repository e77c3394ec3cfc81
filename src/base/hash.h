// FNV-1a, for digests that tell apart what nobody forges. Not cryptographic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cotenant::base {

std::uint64_t fnv1a(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325ULL);

// 32 hex digits.
std::string digest_hex(std::string_view text);

}  // namespace cotenant::base
