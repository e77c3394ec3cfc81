#include "adapters/docker_cache.h"

#include <gtest/gtest.h>

namespace cotenant::adapters {
namespace {

ports::ContainerState container(const std::string& id, ports::ContainerPhase phase) {
  ports::ContainerState state;
  state.id = id;
  state.phase = phase;
  state.started_at_ms = 42;
  return state;
}

const DockerCache::Clock::time_point kNow{std::chrono::hours(1)};

TEST(DockerCache, KeepsRunningContainersOnly) {
  using enum ports::ContainerPhase;
  DockerCache cache;
  cache.put(container("run", kRunning), cache.generation(), kNow);
  cache.put(container("made", kCreated), cache.generation(), kNow);
  cache.put(container("gone", kStopped), cache.generation(), kNow);
  ASSERT_TRUE(cache.get("run", kNow));
  EXPECT_EQ(cache.get("run", kNow)->started_at_ms, 42);
  EXPECT_FALSE(cache.get("made", kNow));
  EXPECT_FALSE(cache.get("gone", kNow));
  // A container that stopped in the meantime goes.
  cache.put(container("run", kStopped), cache.generation(), kNow);
  EXPECT_FALSE(cache.get("run", kNow));
}

TEST(DockerCache, EntriesAge) {
  DockerCache cache;
  cache.put(container("a", ports::ContainerPhase::kRunning), cache.generation(), kNow);
  EXPECT_TRUE(cache.get("a", kNow + DockerCache::kMaxAge));
  EXPECT_FALSE(cache.get("a", kNow + DockerCache::kMaxAge + std::chrono::seconds(1)));
}

TEST(DockerCache, ForgetsOneOrAll) {
  DockerCache cache;
  for (const char* id : {"a", "b", "c"}) {
    cache.put(container(id, ports::ContainerPhase::kRunning), cache.generation(), kNow);
  }
  cache.forget("a");
  EXPECT_FALSE(cache.get("a", kNow));
  EXPECT_TRUE(cache.get("b", kNow));
  cache.forget("");
  EXPECT_FALSE(cache.get("b", kNow));
}

// The answer of an inspect that began before a restart must not be kept after it.
TEST(DockerCache, RefusesWhatMayBeOlderThanAChange) {
  DockerCache cache;
  const std::uint64_t before = cache.generation();
  cache.forget("a");
  cache.put(container("a", ports::ContainerPhase::kRunning), before, kNow);
  EXPECT_FALSE(cache.get("a", kNow));
}

TEST(DockerCache, IsBounded) {
  DockerCache cache;
  for (std::size_t i = 0; i <= DockerCache::kEntriesMax; ++i) {
    cache.put(container(std::to_string(i), ports::ContainerPhase::kRunning), cache.generation(),
              kNow);
  }
  EXPECT_TRUE(cache.get("0", kNow));
  EXPECT_FALSE(cache.get(std::to_string(DockerCache::kEntriesMax), kNow));
}

}  // namespace
}  // namespace cotenant::adapters
