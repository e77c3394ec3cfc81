#include "net/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/assert.h"

namespace cotenant::net {

Sha256 sha256(std::string_view data) {
  Sha256 digest{};
  unsigned size = 0;
  const int done =
      EVP_Digest(data.data(), data.size(), digest.data(), &size, EVP_sha256(), nullptr);
  COTENANT_ASSERT(done == 1 && size == digest.size());
  return digest;
}

Sha256 hmac_sha256(std::string_view key, std::string_view data) {
  Sha256 digest{};
  unsigned size = 0;
  const auto* const done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(data.data()), data.size(), digest.data(), &size);
  COTENANT_ASSERT(done != nullptr && size == digest.size());
  return digest;
}

std::string hex(const Sha256& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const std::uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xf];
  }
  return text;
}

std::string sha256_hex(std::string_view data) {
  return hex(sha256(data));
}

std::string_view bytes(const Sha256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

bool equal_in_constant_time(std::string_view left, std::string_view right) {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string random_text(std::size_t chars, std::string_view alphabet) {
  COTENANT_ASSERT(!alphabet.empty() && alphabet.size() <= 256);
  // Values from here on would make the first characters likelier.
  const std::size_t fair = 256 - 256 % alphabet.size();
  std::string text;
  while (text.size() < chars) {
    unsigned char byte = 0;
    const int done = RAND_bytes(&byte, 1);
    COTENANT_ASSERT(done == 1);
    if (byte < fair) text += alphabet[byte % alphabet.size()];
  }
  return text;
}

}  // namespace cotenant::net
