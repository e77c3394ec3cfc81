#include "core/ordered_keys.h"

#include <gtest/gtest.h>

#include <set>

#include "base/prng.h"

namespace cotenant::core {
namespace {

TEST(OrderedKeysTest, AgreesWithAStandardSet) {
  base::Prng prng(7);
  // From few keys, where chunks thin out and merge, to many, where they split.
  for (const std::uint64_t range : {50U, 3000U, 100000U}) {
    OrderedKeys keys;
    std::set<std::uint64_t> want;
    for (int step = 0; step < 60000; ++step) {
      const std::uint64_t key = prng.next() % range;
      // Grows, then shrinks.
      const bool insert = prng.next() % 100 < (step < 30000 ? 60U : 35U);
      if (insert && want.insert(key).second) keys.insert(key);
      if (!insert && want.erase(key) > 0) keys.erase(key);
      const std::uint64_t from = prng.next() % range;
      const auto wanted = want.lower_bound(from);
      const auto got = keys.at_least(from);
      ASSERT_EQ(got.at_end(), wanted == want.end());
      if (!got.at_end()) {
        ASSERT_EQ(got.key(), *wanted);
      }
    }
    ASSERT_EQ(keys.size(), want.size());
    auto at = keys.first();
    for (const std::uint64_t key : want) {
      ASSERT_FALSE(at.at_end());
      ASSERT_EQ(at.key(), key);
      at.advance();
    }
    EXPECT_TRUE(at.at_end());
  }
}

TEST(OrderedKeysDeathTest, AKeyTwiceOrAbsentStopsTheProgram) {
  OrderedKeys keys;
  keys.insert(5);
  EXPECT_DEATH(keys.insert(5), "assertion failed");
  EXPECT_DEATH(keys.erase(6), "assertion failed");
}

}  // namespace
}  // namespace cotenant::core
