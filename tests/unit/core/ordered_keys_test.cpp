#include "core/placement/ordered_keys.h"

#include <gtest/gtest.h>

#include <map>

#include "base/prng.h"

namespace cotenant::core {
namespace {

Room random_room(base::Prng& prng) {
  // Mostly full nodes, so that whole leaves and branches are stepped over.
  const auto up_to = [&](std::uint64_t most, std::int64_t unit) {
    return static_cast<std::int64_t>(prng.next() % (most + 1)) * unit;
  };
  if (prng.next() % 50 != 0) return room_of(up_to(2, kRoomCpuUnits), up_to(9, kRoomMemoryMib));
  return room_of(up_to(100, kRoomCpuUnits), up_to(200, kRoomMemoryMib));
}

TEST(OrderedKeysTest, AgreesWithAStandardMap) {
  base::Prng prng(7);
  // From few keys, where leaves thin out and merge, to many, where branches split.
  for (const std::uint64_t range : {50U, 3000U, 100000U}) {
    OrderedKeys keys;
    std::map<std::uint64_t, Room> want;
    for (int step = 0; step < 60000; ++step) {
      const std::uint64_t key = prng.next() % range;
      const Room room = random_room(prng);
      // Grows, then shrinks.
      const bool insert = prng.next() % 100 < (step < 30000 ? 60U : 35U);
      if (!insert) {
        if (want.erase(key) > 0) keys.erase(key);
      } else if (want.emplace(key, room).second) {
        keys.insert(key, room);
      } else {
        want[key] = room;
        keys.set_room(key, room);
      }
      const Room need = prng.next() % 2 == 0 ? Room{} : random_room(prng);
      const std::uint64_t from = prng.next() % range;
      auto wanted = want.lower_bound(from);
      auto got = keys.at_least(from, need);
      for (int steps = 0; steps < 3; ++steps) {
        while (wanted != want.end() && !wanted->second.covers(need)) ++wanted;
        ASSERT_EQ(got.at_end(), wanted == want.end());
        if (got.at_end()) break;
        ASSERT_EQ(got.key(), wanted->first);
        got.advance();
        ++wanted;
      }
    }
    ASSERT_EQ(keys.size(), want.size());
    auto at = keys.first();
    for (const auto& [key, room] : want) {
      ASSERT_FALSE(at.at_end());
      ASSERT_EQ(at.key(), key);
      at.advance();
    }
    EXPECT_TRUE(at.at_end());
    for (const auto& [key, room] : want) keys.erase(key);
    EXPECT_TRUE(keys.first().at_end());
  }
}

TEST(OrderedKeysTest, ANodeThatCanTakeANeedIsNeverSteppedOver) {
  base::Prng prng(8);
  for (int round = 0; round < 20000; ++round) {
    // Up to beyond what a Room can tell apart.
    const auto amount = [&] { return static_cast<std::int64_t>(prng.next() % 3'000'000); };
    const std::int64_t cpu = amount();
    const std::int64_t memory = amount();
    const Room need = room_of(cpu - cpu * static_cast<std::int64_t>(prng.next() % 2) / 3, memory);
    EXPECT_TRUE(room_of(cpu, memory).covers(need));
  }
  EXPECT_FALSE(room_of(100 * kRoomCpuUnits, 0).covers(room_of(101 * kRoomCpuUnits, 0)));
  EXPECT_EQ(room_of(-5, -5), Room{});
}

TEST(OrderedKeysDeathTest, AKeyTwiceOrAbsentStopsTheProgram) {
  OrderedKeys keys;
  keys.insert(5, {});
  EXPECT_DEATH(keys.insert(5, {}), "assertion failed");
  EXPECT_DEATH(keys.erase(6), "assertion failed");
  EXPECT_DEATH(keys.set_room(6, {}), "assertion failed");
}

}  // namespace
}  // namespace cotenant::core
