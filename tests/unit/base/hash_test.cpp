#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace cotenant::base {
namespace {

// The published test vectors of 64-bit FNV-1a: a stored digest must stay valid.
TEST(HashTest, GivesTheReferenceValues) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8ULL);
}

TEST(HashTest, BytesAboveAsciiCountAsUnsigned) {
  EXPECT_NE(fnv1a("\xC3\xA9"), fnv1a("CI"));
}

TEST(HashTest, DigestIsTheSameForTheSameTextAndShowsEveryChange) {
  const std::string digest = digest_hex("{\"count\":1}");
  EXPECT_EQ(digest.size(), 32U);
  EXPECT_EQ(digest.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(digest, digest_hex("{\"count\":1}"));
  EXPECT_NE(digest, digest_hex("{\"count\":2}"));
  EXPECT_NE(digest_hex(""), digest_hex(std::string_view("\0", 1)));
  EXPECT_NE(digest.substr(0, 16), digest.substr(16));
}

}  // namespace
}  // namespace cotenant::base
