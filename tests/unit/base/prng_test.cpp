#include "base/prng.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

namespace cotenant::base {
namespace {

// The reference outputs of SplitMix64 (Vigna's splitmix64.c, seed 1234567 and seed 0): the ids of a
// recorded run must not change with a rewrite of the generator.
TEST(PrngTest, GivesTheReferenceSequence) {
  struct Row {
    std::uint64_t seed;
    std::uint64_t want[3];
  };
  const Row rows[] = {
      {0, {0xE220A8397B1DCDAFULL, 0x6E789E6AA1B965F4ULL, 0x06C45D188009454FULL}},
      {1234567, {6457827717110365317ULL, 3203168211198807973ULL, 9817491932198370423ULL}},
  };
  for (const Row& row : rows) {
    Prng prng(row.seed);
    for (const std::uint64_t want : row.want) EXPECT_EQ(prng.next(), want) << "seed " << row.seed;
  }
}

TEST(PrngTest, SameSeedGivesTheSameIds) {
  Prng first(42);
  Prng second(42);
  Prng other(43);
  for (int i = 0; i < 1000; ++i) {
    const std::string id = first.next_hex_id();
    EXPECT_EQ(id, second.next_hex_id());
    EXPECT_NE(id, other.next_hex_id());
  }
}

TEST(PrngTest, HexIdsAre32LowerCaseDigitsAndDiffer) {
  Prng prng(7);
  std::set<std::string> ids;
  for (int i = 0; i < 10000; ++i) {
    const std::string id = prng.next_hex_id();
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 10000U);
}

// The words of an id keep their leading zeros.
TEST(PrngTest, HexIdIsTheTwoNextWords) {
  Prng words(99);
  Prng ids(99);
  const std::uint64_t high = words.next();
  const std::uint64_t low = words.next();
  const std::string id = ids.next_hex_id();
  EXPECT_EQ(std::stoull(id.substr(0, 16), nullptr, 16), high);
  EXPECT_EQ(std::stoull(id.substr(16), nullptr, 16), low);
}

}  // namespace
}  // namespace cotenant::base
