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

using enum ports::ContainerPhase;

TEST(DockerCache, KeepsWhatDoesNotChangeByItself) {
  DockerCache cache;
  cache.put(container("run", kRunning), kRunning, cache.generation(), kNow);
  cache.put(container("made", kCreated), kCreated, cache.generation(), kNow);
  cache.put(container("gone", kStopped), kStopped, cache.generation(), kNow);
  cache.put(container("failed", kStopped), kCreated, cache.generation(), kNow);
  ASSERT_TRUE(cache.get("run", kRunning, kNow));
  EXPECT_EQ(cache.get("run", kRunning, kNow)->started_at_ms, 42);
  EXPECT_FALSE(cache.get("made", kCreated, kNow));
  EXPECT_TRUE(cache.get("gone", kStopped, kNow));
  EXPECT_TRUE(cache.get("failed", kCreated, kNow));
  // Listed in another phase: it has changed, whatever the events said.
  EXPECT_FALSE(cache.get("run", kStopped, kNow));
  EXPECT_FALSE(cache.get("gone", kRunning, kNow));
}

TEST(DockerCache, EntriesAge) {
  DockerCache cache;
  const std::chrono::seconds second(1);
  cache.put(container("a", kRunning), kRunning, cache.generation(), kNow);
  cache.put(container("b", kStopped), kStopped, cache.generation(), kNow);
  EXPECT_TRUE(cache.get("a", kRunning, kNow + DockerCache::kMaxAge));
  EXPECT_FALSE(cache.get("a", kRunning, kNow + DockerCache::kMaxAge + second));
  EXPECT_TRUE(cache.get("b", kStopped, kNow + DockerCache::kMaxAgeStopped));
  EXPECT_FALSE(cache.get("b", kStopped, kNow + DockerCache::kMaxAgeStopped + second));
}

TEST(DockerCache, ForgetsOneOrAll) {
  DockerCache cache;
  for (const char* id : {"a", "b", "c"}) {
    cache.put(container(id, kRunning), kRunning, cache.generation(), kNow);
  }
  cache.forget("a");
  EXPECT_FALSE(cache.get("a", kRunning, kNow));
  EXPECT_TRUE(cache.get("b", kRunning, kNow));
  cache.forget("");
  EXPECT_FALSE(cache.get("b", kRunning, kNow));
}

// The answer of an inspect that began before a restart must not be kept after it.
TEST(DockerCache, RefusesWhatMayBeOlderThanAChange) {
  DockerCache cache;
  const std::uint64_t before = cache.generation();
  cache.forget("a");
  cache.put(container("a", kRunning), kRunning, before, kNow);
  EXPECT_FALSE(cache.get("a", kRunning, kNow));
}

TEST(DockerCache, IsBounded) {
  DockerCache cache;
  for (std::size_t i = 0; i <= DockerCache::kEntriesMax; ++i) {
    cache.put(container(std::to_string(i), kRunning), kRunning, cache.generation(), kNow);
  }
  EXPECT_TRUE(cache.get("0", kRunning, kNow));
  EXPECT_FALSE(cache.get(std::to_string(DockerCache::kEntriesMax), kRunning, kNow));
}

}  // namespace
}  // namespace cotenant::adapters
