#include "core/gpu_ledger.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "builders.h"

namespace cotenant::core {
namespace {

using test::dedicated_gpu;
using test::GpuSetup;
using test::idle_gpu;
using test::shared_gpu;
using test::unreadable_gpu;

GpuLedger ledger_of(const std::vector<GpuSetup>& gpus) {
  return test::instance("i", 1, gpus).gpus;
}

TEST(GpuLedgerTest, ModeSpellingsAreThoseOfEcs) {
  EXPECT_EQ(to_string(SharingMode::kIdle), "IDLE");
  EXPECT_EQ(to_string(SharingMode::kNvidiaMps), "NVIDIA_MPS");
  EXPECT_EQ(to_string(SharingMode::kDedicated), "DEDICATED");
}

TEST(GpuLedgerTest, OutOfServiceItKeepsWhatItHoldsAndTakesNothingMore) {
  GpuLedger ledger({GpuDevice{"GPU-1", "L4", 1000, 48, "it was lost"}});
  EXPECT_FALSE(ledger.is_healthy(0));
  EXPECT_EQ(ledger.idle_count(), 0);
  EXPECT_EQ(ledger.refuses_share(0, 1, 1), GpuRefusal::kUnhealthy);
  EXPECT_EQ(ledger.refuses_whole(0), GpuRefusal::kUnhealthy);
  ledger.reserve_share(0, "held before", 600, 2);
  EXPECT_EQ(ledger.remaining_mib(0), 400);
  ledger.release("held before");
  ledger.reserve_whole(0, "held before");
  EXPECT_EQ(ledger.mode(0), SharingMode::kDedicated);
}

TEST(GpuLedgerTest, ShowsModeMemoryCountsAndHolders) {
  struct Row {
    std::string_view name;
    GpuSetup gpu;
    SharingMode mode;
    std::int64_t total_mib;
    std::int64_t remaining_mib;
    int container_count;
    std::vector<std::string> task_ids;
  };
  const Row rows[] = {
      {"idle", idle_gpu(), SharingMode::kIdle, 80000, 80000, 0, {}},
      {"one share", shared_gpu({{"t1", 30000}}), SharingMode::kNvidiaMps, 80000, 50000, 1, {"t1"}},
      {"shares of several tasks and containers, sorted by task",
       shared_gpu({{"t2", 30000, 3}, {"t1", 10000}}),
       SharingMode::kNvidiaMps,
       80000,
       40000,
       4,
       {"t1", "t2"}},
      {"full", shared_gpu({{"t1", 80000}}), SharingMode::kNvidiaMps, 80000, 0, 1, {"t1"}},
      {"dedicated has nothing left and counts one container",
       dedicated_gpu("t1"),
       SharingMode::kDedicated,
       80000,
       0,
       1,
       {"t1"}},
      {"unreadable memory counts as none", unreadable_gpu(), SharingMode::kIdle, 0, 0, 0, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const GpuLedger ledger = ledger_of({row.gpu});
    EXPECT_EQ(ledger.mode(0), row.mode);
    EXPECT_EQ(ledger.total_mib(0), row.total_mib);
    EXPECT_EQ(ledger.remaining_mib(0), row.remaining_mib);
    EXPECT_EQ(ledger.container_count(0), row.container_count);
    EXPECT_EQ(ledger.task_ids(0), row.task_ids);
    EXPECT_EQ(ledger.idle_count(), row.mode == SharingMode::kIdle ? 1 : 0);
  }
}

TEST(GpuLedgerTest, SaysWhyAShareIsRefused) {
  const GpuSetup six_slots = {80000, 6, {{"t1", 100, 3}}};
  struct Row {
    std::string_view name;
    GpuSetup gpu;
    std::int64_t memory_mib;
    int containers;
    std::optional<GpuRefusal> want;
  };
  const Row rows[] = {
      {"idle takes all its memory", idle_gpu(), 80000, 1, {}},
      {"idle, 1 MiB too much", idle_gpu(), 80001, 1, GpuRefusal::kMemory},
      {"shared takes what is left", shared_gpu({{"t1", 30000}}), 50000, 1, {}},
      {"shared, 1 MiB too much", shared_gpu({{"t1", 30000}}), 50001, 1, GpuRefusal::kMemory},
      {"dedicated", dedicated_gpu("t1"), 1, 1, GpuRefusal::kDedicated},
      {"unreadable memory", unreadable_gpu(), 1, 1, GpuRefusal::kMemoryUnknown},
      {"the last slot but the probe's", six_slots, 100, 2, {}},
      {"the probe's slot", six_slots, 100, 3, GpuRefusal::kClientSlots},
      {"memory is looked at before slots", six_slots, 80000, 3, GpuRefusal::kMemory},
      {"one slot is the probe's alone", {80000, 1}, 1, 1, GpuRefusal::kClientSlots},
      {"no slots", {80000, 0}, 1, 1, GpuRefusal::kClientSlots},
      {"48 slots serve 47 containers", {80000, 48}, 1, 47, {}},
      {"48 slots do not serve 48", {80000, 48}, 1, 48, GpuRefusal::kClientSlots},
      {"an absurd amount does not overflow", shared_gpu({{"t1", 30000}}), INT64_MAX, 1,
       GpuRefusal::kMemory},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(ledger_of({row.gpu}).refuses_share(0, row.memory_mib, row.containers), row.want);
  }
}

TEST(GpuLedgerTest, SaysWhyAWholeGpuIsRefused) {
  struct Row {
    std::string_view name;
    GpuSetup gpu;
    std::optional<GpuRefusal> want;
  };
  const Row rows[] = {
      {"idle", idle_gpu(), {}},
      {"idle with unreadable memory", unreadable_gpu(), {}},
      {"shared", shared_gpu({{"t1", 1}}), GpuRefusal::kBusy},
      {"dedicated", dedicated_gpu("t1"), GpuRefusal::kDedicated},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(ledger_of({row.gpu}).refuses_whole(0), row.want);
  }
}

TEST(GpuLedgerTest, ReleaseGivesBackAllThatTheTaskHoldsAndNothingElse) {
  GpuLedger ledger = ledger_of(
      {dedicated_gpu("t1"), dedicated_gpu("t1"), shared_gpu({{"t2", 10000, 2}, {"t3", 20000}})});
  ledger.release("t1");
  EXPECT_EQ(ledger.mode(0), SharingMode::kIdle);
  EXPECT_EQ(ledger.mode(1), SharingMode::kIdle);
  EXPECT_EQ(ledger.remaining_mib(2), 50000);
  EXPECT_EQ(ledger.idle_count(), 2);

  ledger.release("t2");
  EXPECT_EQ(ledger.mode(2), SharingMode::kNvidiaMps);
  EXPECT_EQ(ledger.remaining_mib(2), 60000);
  EXPECT_EQ(ledger.container_count(2), 1);

  ledger.release("nobody");
  EXPECT_EQ(ledger.container_count(2), 1);

  ledger.release("t3");
  EXPECT_EQ(ledger.mode(2), SharingMode::kIdle);
  EXPECT_FALSE(ledger.refuses_whole(2));
}

TEST(GpuLedgerTest, FindsAGpuByItsUuid) {
  const GpuLedger ledger = ledger_of({idle_gpu(), idle_gpu()});
  EXPECT_EQ(ledger.size(), 2U);
  EXPECT_EQ(ledger.find("GPU-i-1"), 1U);
  EXPECT_EQ(ledger.find("GPU-i-2"), std::nullopt);
  EXPECT_EQ(ledger.find(""), std::nullopt);
  EXPECT_EQ(GpuLedger().find("GPU-i-0"), std::nullopt);
}

TEST(GpuLedgerTest, ACopyIsIndependent) {
  GpuLedger ledger = ledger_of({idle_gpu()});
  GpuLedger what_if = ledger;
  what_if.reserve_share(0, "t1", 1000, 1);
  EXPECT_EQ(ledger.mode(0), SharingMode::kIdle);
  EXPECT_EQ(what_if.remaining_mib(0), 79000);
}

// A caller that did not ask first, or that lost count, must not get a reservation.
TEST(GpuLedgerDeathTest, MisuseStopsTheProgram) {
  GpuLedger ledger =
      ledger_of({shared_gpu({{"t1", 30000}}), dedicated_gpu("t2"), idle_gpu(), unreadable_gpu()});
  EXPECT_DEATH(ledger.reserve_share(0, "t9", 50001, 1), "assertion failed");
  EXPECT_DEATH(ledger.reserve_share(0, "t9", 1, 47), "assertion failed");
  EXPECT_DEATH(ledger.reserve_share(0, "t1", 1, 1), "assertion failed") << "holds a share already";
  EXPECT_DEATH(ledger.reserve_share(1, "t9", 1, 1), "assertion failed");
  EXPECT_DEATH(ledger.reserve_share(3, "t9", 1, 1), "assertion failed");
  EXPECT_DEATH(ledger.reserve_whole(0, "t9"), "assertion failed");
  EXPECT_DEATH(ledger.reserve_whole(1, "t2"), "assertion failed");
}

TEST(GpuLedgerDeathTest, AnEmptyOrNegativeShareStopsTheProgram) {
  GpuLedger ledger = ledger_of({idle_gpu()});
  EXPECT_DEATH(ledger.reserve_share(0, "t1", -1, 1), "assertion failed");
  EXPECT_DEATH(ledger.reserve_share(0, "t1", 1000, 0), "assertion failed");
  EXPECT_DEATH(ledger.reserve_share(0, "t1", 1000, -1), "assertion failed");
}

// A task's GPUs are found by their UUIDs; the codec refuses an agent that registers one twice.
TEST(GpuLedgerDeathTest, GpusWithoutNamesOfTheirOwnStopTheProgram) {
  const GpuDevice gpu{"GPU-1", "H100", 80000, 48};
  const GpuDevice nameless{"", "H100", 80000, 48};
  EXPECT_DEATH(GpuLedger({gpu, gpu}), "assertion failed");
  EXPECT_DEATH(GpuLedger({nameless}), "assertion failed");
}

TEST(GpuLedgerDeathTest, AGpuThatIsNotThereStopsTheProgram) {
  const GpuLedger ledger = ledger_of({idle_gpu()});
  EXPECT_DEATH(static_cast<void>(ledger.remaining_mib(1)), "assertion failed");
  EXPECT_DEATH(static_cast<void>(ledger.mode(1)), "assertion failed");
}

}  // namespace
}  // namespace cotenant::core
