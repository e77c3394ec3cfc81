// The words that clients see and send: ECS's, in both directions.
#include <gtest/gtest.h>

#include <string_view>

#include "core/instance.h"
#include "core/placement/placement.h"
#include "core/task.h"
#include "core/task_definition.h"

namespace cotenant::core {
namespace {

template <class Enum>
struct Spelling {
  Enum value;
  std::string_view text;
};

template <class Enum, std::size_t N, class Parse>
void expect_round_trip(const Spelling<Enum> (&rows)[N], Parse parse) {
  for (const auto& row : rows) {
    EXPECT_EQ(to_string(row.value), row.text);
    EXPECT_EQ(parse(row.text), row.value) << row.text;
  }
  for (const std::string_view wrong : {"running", "Stopped", " RUNNING", "RUNNING ", "?"}) {
    EXPECT_FALSE(parse(wrong).has_value()) << wrong;
  }
}

TEST(SpellingTest, Task) {
  const Spelling<TaskStatus> task[] = {{TaskStatus::kPending, "PENDING"},
                                       {TaskStatus::kRunning, "RUNNING"},
                                       {TaskStatus::kStopping, "STOPPING"},
                                       {TaskStatus::kStopped, "STOPPED"}};
  expect_round_trip(task, parse_task_status);
  const Spelling<ContainerStatus> container[] = {{ContainerStatus::kPending, "PENDING"},
                                                 {ContainerStatus::kRunning, "RUNNING"},
                                                 {ContainerStatus::kStopped, "STOPPED"}};
  expect_round_trip(container, parse_container_status);
  const Spelling<DesiredStatus> desired[] = {{DesiredStatus::kRunning, "RUNNING"},
                                             {DesiredStatus::kStopped, "STOPPED"}};
  expect_round_trip(desired, parse_desired_status);
  const Spelling<StopCode> stop[] = {
      {StopCode::kTaskFailedToStart, "TaskFailedToStart"},
      {StopCode::kEssentialContainerExited, "EssentialContainerExited"},
      {StopCode::kUserInitiated, "UserInitiated"},
      {StopCode::kNone, ""}};
  expect_round_trip(stop, parse_stop_code);
}

TEST(SpellingTest, InstanceAndNetworkMode) {
  const Spelling<InstanceStatus> instance[] = {{InstanceStatus::kActive, "ACTIVE"},
                                               {InstanceStatus::kDraining, "DRAINING"},
                                               {InstanceStatus::kInactive, "INACTIVE"}};
  expect_round_trip(instance, parse_instance_status);
  const Spelling<NetworkMode> network[] = {{NetworkMode::kBridge, "bridge"},
                                           {NetworkMode::kHost, "host"},
                                           {NetworkMode::kNone, "none"},
                                           {NetworkMode::kAwsvpc, "awsvpc"}};
  expect_round_trip(network, parse_network_mode);
  EXPECT_FALSE(parse_network_mode("nat").has_value());
}

TEST(SpellingTest, PlacementReasons) {
  const Spelling<PlacementTest> rows[] = {{PlacementTest::kAgent, "AGENT"},
                                          {PlacementTest::kAttribute, "ATTRIBUTE"},
                                          {PlacementTest::kCpu, "RESOURCE:CPU"},
                                          {PlacementTest::kMemory, "RESOURCE:MEMORY"},
                                          {PlacementTest::kGpu, "RESOURCE:GPU"}};
  for (const auto& row : rows) EXPECT_EQ(reason(row.value), row.text);
}

}  // namespace
}  // namespace cotenant::core
