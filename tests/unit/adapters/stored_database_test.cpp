// Databases that released versions have written (tests/stored/<version>.db): each loads, whatever has
// changed since. How one is made: run that version with tasks in every status, kill -9 it, and take
// its cotenant.db after a checkpoint.
#include <gtest/gtest.h>

#include <filesystem>

#include "adapters/sqlite_store.h"
#include "codec/record.h"
#include "temp_folder.h"

namespace cotenant::adapters {
namespace {

TEST(StoredDatabaseTest, EveryReleasedVersionsLoads) {
  int databases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(COTENANT_TEST_STORED)) {
    SCOPED_TRACE(entry.path());
    const TempFolder folder;
    const std::string copy = folder.path() + "/cotenant.db";
    std::filesystem::copy_file(entry.path(), copy);
    auto store = SqliteStore::open(copy, {});
    ASSERT_TRUE(store) << store.error().message;
    const auto snapshot = (*store)->load();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    const auto state = codec::decode_records(snapshot->records);
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_FALSE(state->families.empty());
    EXPECT_FALSE(state->tasks.empty());
    EXPECT_FALSE(state->instances.empty());
    ++databases;
  }
  EXPECT_GE(databases, 1);
}

TEST(StoredDatabaseTest, WhatIsInThatOf010) {
  const TempFolder folder;
  const std::string copy = folder.path() + "/cotenant.db";
  std::filesystem::copy_file(std::string(COTENANT_TEST_STORED) + "/0.1.0.db", copy);
  auto store = SqliteStore::open(copy, {});
  ASSERT_TRUE(store) << store.error().message;
  const auto snapshot = (*store)->load();
  ASSERT_TRUE(snapshot);
  auto state = codec::decode_records(snapshot->records);
  ASSERT_TRUE(state) << state.error().message;

  EXPECT_EQ(state->clusters.size(), 2U);
  EXPECT_EQ(state->families.size(), 5U);
  EXPECT_EQ(state->client_tokens.size(), 3U);
  const auto everything = core::find_definition(*state, "everything", 1);
  ASSERT_NE(everything, nullptr);
  EXPECT_EQ(everything->network_mode, core::NetworkMode::kNone);
  EXPECT_EQ(everything->containers[0].gpu, (core::GpuRequest{core::SharedGpu{8000, 40}}));
  EXPECT_EQ(everything->containers[0].stop_timeout_s, 5);
  EXPECT_FALSE(everything->containers[1].essential);
  EXPECT_EQ(core::find_definition(*state, "all", 1)->containers[0].gpu,
            (core::GpuRequest{core::WholeGpus{0, true}}));
  // 0.1.0 took it, later versions do not: it is kept and says so.
  const auto windows = core::find_definition(*state, "windows", 1);
  ASSERT_NE(windows, nullptr);
  ASSERT_FALSE(windows->warnings.empty());
  EXPECT_NE(windows->warnings.back().find("runtimePlatform.operatingSystemFamily"),
            std::string::npos);

  // Three tasks hold what they held: a share, a whole GPU, and one that is being stopped.
  ASSERT_EQ(state->instances.size(), 1U);
  const core::Instance& instance = state->instances.begin()->second;
  EXPECT_EQ(instance.task_ids.size(), 3U);
  EXPECT_EQ(instance.used_memory_mib, 64 + (128 + 64) + 64);
  EXPECT_EQ(instance.gpus.remaining_mib(0), instance.gpus.total_mib(0) - 8000);
  EXPECT_EQ(instance.gpus.mode(1), core::SharingMode::kDedicated);
  int stopping = 0;
  for (const auto& [id, task] : state->tasks) {
    if (task.desired_status == core::DesiredStatus::kStopped) ++stopping;
  }
  EXPECT_EQ(stopping, 1);
}

}  // namespace
}  // namespace cotenant::adapters
