#include "agent/report_tracker.h"

#include <gtest/gtest.h>

namespace cotenant::agent {
namespace {

using core::ContainerStatus;
using core::TaskObservation;

constexpr base::TimeMs kResend = 1000;

TaskObservation seen(const std::string& id, ContainerStatus status) {
  TaskObservation task;
  task.task_id = id;
  task.containers.emplace_back().name = "c";
  task.containers.back().status = status;
  return task;
}

TEST(ReportTrackerTest, SendsWhatChangedAndNothingElse) {
  ReportTracker tracker(kResend);
  const auto pending = seen("a", ContainerStatus::kPending);
  const auto running = seen("a", ContainerStatus::kRunning);
  const auto other = seen("b", ContainerStatus::kRunning);
  EXPECT_TRUE(tracker.take({pending}, 1, 0).empty()) << "the control plane assumes so";
  EXPECT_EQ(tracker.take({running}, 1, 0), std::vector{running});
  EXPECT_TRUE(tracker.take({running}, 2, 0).empty());
  EXPECT_EQ(tracker.take({running, other}, 2, 0), std::vector{other});
}

TEST(ReportTrackerTest, SendsAgainWhatIsNotAcknowledged) {
  ReportTracker tracker(kResend);
  const auto a = seen("a", ContainerStatus::kRunning);
  const auto b = seen("b", ContainerStatus::kRunning);
  EXPECT_EQ(tracker.take({a}, 1, 0).size(), 1u);
  EXPECT_EQ(tracker.take({a, b}, 2, 10).size(), 1u);
  tracker.acknowledge(1);
  EXPECT_TRUE(tracker.take({a, b}, 3, kResend + 9).empty());
  EXPECT_EQ(tracker.take({a, b}, 3, kResend + 10), std::vector{b});
  // The acknowledgement of the first sending does not stand for the second.
  tracker.acknowledge(2);
  EXPECT_EQ(tracker.take({a, b}, 4, 2 * kResend + 10), std::vector{b});
  tracker.acknowledge(4);
  EXPECT_TRUE(tracker.take({a, b}, 5, 100 * kResend).empty());
}

TEST(ReportTrackerTest, AHelloCarriesEverything) {
  ReportTracker tracker(kResend);
  const auto a = seen("a", ContainerStatus::kRunning);
  const auto b = seen("b", ContainerStatus::kRunning);
  EXPECT_EQ(tracker.take({a}, 1, 0).size(), 1u);
  tracker.sent_all({a, b}, 1);
  EXPECT_TRUE(tracker.take({a, b}, 2, 100 * kResend).empty());
  const auto stopped = seen("a", ContainerStatus::kStopped);
  EXPECT_EQ(tracker.take({stopped, b}, 2, 0), std::vector{stopped});
}

TEST(ReportTrackerTest, ForgetsTasksThatAreGone) {
  ReportTracker tracker(kResend);
  const auto a = seen("a", ContainerStatus::kRunning);
  EXPECT_EQ(tracker.take({a}, 1, 0).size(), 1u);
  EXPECT_TRUE(tracker.take({}, 2, 0).empty());
  EXPECT_EQ(tracker.take({a}, 2, 0).size(), 1u);
}

}  // namespace
}  // namespace cotenant::agent
