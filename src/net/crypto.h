// The few primitives of OpenSSL that cotenant uses. Pure functions, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cotenant::net {

using Sha256 = std::array<std::uint8_t, 32>;

Sha256 sha256(std::string_view data);
Sha256 hmac_sha256(std::string_view key, std::string_view data);

// Lower-case hex digits.
std::string hex(const Sha256& digest);
std::string sha256_hex(std::string_view data);
std::string_view bytes(const Sha256& digest);

// In a time that depends on the lengths only.
bool equal_in_constant_time(std::string_view left, std::string_view right);

// From the system's generator: `chars` characters of `alphabet`, each equally likely. The alphabet
// has at most 256 characters. Ends the process when there is no randomness: nothing could be safe.
std::string random_text(std::size_t chars, std::string_view alphabet);

}  // namespace cotenant::net
