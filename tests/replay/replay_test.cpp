// The engine's replays against figures of an independent replay of the same protocol: the same random
// numbers, so every digit must agree.
#include "replay/replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace cotenant::replay {
namespace {

Replay replay_of(const std::string& workload, const GpuSizes& sizes = {}) {
  const std::string folder = COTENANT_OPENB;
  auto trace = read_trace(folder + "/openb_node_list_gpu_node.csv.xz",
                          folder + "/openb_pod_list_" + workload + ".csv.xz");
  EXPECT_TRUE(trace.has_value()) << trace.error().message;
  auto replay = Replay::make(std::move(*trace), sizes);
  EXPECT_TRUE(replay.has_value()) << replay.error().message;
  return std::move(*replay);
}

struct FillUpRow {
  const char* workload;
  const char* policy;
  std::uint64_t seed;
  int events;
  int failed;
  const char* at_100;  // 3 decimals; empty: not compared
  const char* at_end;
};

TEST(ReplayTest, FillUpAgreesToTheLastDigit) {
  for (const FillUpRow& row : {
           FillUpRow{"default", "TightGpu", 42, 10824, 2491, "", "5.2622"},
           FillUpRow{"default", "BestFit", 42, 10824, 2615, "", "6.9459"},
           FillUpRow{"default", "FGD", 42, 10824, 2452, "", "4.7395"},
           FillUpRow{"default", "TC", 42, 10824, 2405, "4.123", "4.0398"},
           FillUpRow{"default", "TCB", 42, 10824, 2397, "4.166", "4.0633"},
           FillUpRow{"default", "WV", 42, 10824, 2363, "3.837", "3.6758"},
           FillUpRow{"default", "WVonline", 42, 10824, 2358, "3.860", "3.7041"},
           FillUpRow{"default", "Balanced", 42, 10824, 2413, "4.288", "4.1658"},
           FillUpRow{"default", "Balanced", 43, 0, 2419, "4.185", "4.0874"},
           FillUpRow{"gpuspec33", "Balanced", 42, 0, 2456, "6.170", "4.4656"},
           FillUpRow{"multigpu50", "Balanced", 42, 0, 1376, "2.350", "2.2927"},
       }) {
    SCOPED_TRACE(fmt::format("{} {} {}", row.workload, row.policy, row.seed));
    const auto policy = find_replay_policy(row.policy);
    ASSERT_TRUE(policy.has_value());
    const FillUpResult result = replay_of(row.workload).fill_up(*policy, row.seed, 1.3);
    if (row.events > 0) {
      EXPECT_EQ(result.events, row.events);
    }
    EXPECT_EQ(result.failed, row.failed);
    EXPECT_EQ(fmt::format("{:.4f}", result.unallocated), row.at_end);
    if (*row.at_100 != '\0') {
      EXPECT_EQ(fmt::format("{:.3f}", result.unallocated_at[3]), row.at_100);
    }
  }
}

TEST(ReplayTest, ChurnAgreesToTheLastDigit) {
  struct Row {
    const char* workload;
    const char* policy;
    double rho;
    int blocked;
    const char* blocked_gpu;
    const char* unallocated;
  };
  for (const Row& row : {Row{"default", "Balanced", 0.95, 9, "0.3867", "9.2999"},
                         Row{"multigpu50", "Balanced", 1.10, 532, "13.1654", "4.6969"},
                         Row{"gpuspec33", "Balanced", 1.10, 1786, "11.5445", "6.2216"},
                         Row{"default", "FGD", 0.95, 7, "0.3008", "9.1623"},
                         Row{"default", "TightGpu", 0.95, 4, "0.1719", "9.1060"},
                         Row{"default", "TCB", 0.95, 14, "0.6016", "9.5365"},
                         Row{"multigpu50", "FGD", 1.10, 517, "12.8151", "4.8370"},
                         Row{"multigpu50", "TightGpu", 1.10, 608, "15.2444", "7.5650"},
                         Row{"gpuspec33", "TCB", 0.95, 2700, "14.6971", "22.2122"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", row.workload, row.policy, row.rho));
    const ChurnResult result =
        replay_of(row.workload).churn(*find_replay_policy(row.policy), 42, row.rho);
    EXPECT_EQ(result.blocked_requests, row.blocked);
    EXPECT_EQ(fmt::format("{:.4f}", result.blocked_gpu), row.blocked_gpu);
    EXPECT_EQ(fmt::format("{:.4f}", result.unallocated), row.unallocated);
  }
}

TEST(ReplayTest, TwentyMebibytesAPerMilleChangeNothing) {
  for (const char* name : {"TightGpu", "FGD", "Balanced"}) {
    const ReplayPolicy policy = *find_replay_policy(name);
    const FillUpResult milli = replay_of("default").fill_up(policy, 42, 1.3);
    const FillUpResult mib = replay_of("default", {20000, {}}).fill_up(policy, 42, 1.3);
    EXPECT_EQ(mib.failed, milli.failed) << name;
    EXPECT_EQ(fmt::format("{:.4f}", mib.unallocated), fmt::format("{:.4f}", milli.unallocated));
  }
}

TEST(ReplayTest, RealSizesPerModel) {
  const FillUpResult result =
      replay_of("default", {{}, 20000}).fill_up(*find_replay_policy("TightGpu"), 42, 1.3);
  EXPECT_EQ(fmt::format("{:.4f}", result.unallocated), "4.5423");
}

TEST(ReplayTest, ThePolicyNamesAreToldWhereOneIsUnknown) {
  const auto policy = find_replay_policy("Best");
  ASSERT_FALSE(policy.has_value());
  EXPECT_NE(policy.error().message.find("TightGpu"), std::string::npos);
}

}  // namespace
}  // namespace cotenant::replay
