// The ends of clusters, task definitions and container instances, and the bounds of what time takes
// away.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/limits.h"
#include "world.h"

namespace cotenant::core {
namespace {

namespace limits = base::limits;
using base::ErrorCode;
using test::container;
using test::exited;
using test::idle_gpu;
using test::running;
using test::World;

World world_with_tasks(int tasks) {
  World world;
  world.connect("i1", {idle_gpu()});
  world.define("tiny", {[] {
                 ContainerDefinition part = container("c");
                 part.cpu_units = 0;
                 part.memory_mib = 6;
                 return part;
               }()});
  for (int i = 0; i < tasks; ++i) world.run_one("tiny");
  return world;
}

TEST(ReducerLifeTest, ADrainingInstanceKeepsItsTasksAndGetsNoNewOnes) {
  World world = world_with_tasks(1);
  world.must(UpdateInstancesState{"default", {"i1"}, InstanceStatus::kDraining});
  EXPECT_EQ(world.node("i1").task_ids.size(), 1U);
  EXPECT_EQ(world.refused(World::run_command("tiny")).code, ErrorCode::kInvalidParameter);
  world.must(UpdateInstancesState{"default", {"i1"}, InstanceStatus::kActive});
  world.run_one("tiny");
}

// A command stays small; the same one again goes on.
TEST(ReducerLifeTest, AForcedDeregistrationGivesTasksUpInBoundedSteps) {
  World world = world_with_tasks(30);
  bool more = true;
  int steps = 0;
  for (; more && steps < 100; ++steps) {
    const Outcome outcome = world.must(DeregisterInstance{"default", "i1", true});
    EXPECT_LE(outcome.effects.changed_records.size(), 16U);
    more = std::get<BoundedReply>(outcome.reply).more;
  }
  EXPECT_EQ(steps, 3);
  EXPECT_TRUE(world.node("i1").task_ids.empty());
  for (const auto& [id, task] : world.state.tasks) {
    EXPECT_EQ(task.last_status, TaskStatus::kStopped);
    EXPECT_EQ(task.stop_code, StopCode::kTerminationNotice);
  }
}

// The control plane died between two of the steps.
TEST(ReducerLifeTest, ExpireEndsWhatACrashHasLeftOfADeregistration) {
  World world = world_with_tasks(30);
  world.must(DeregisterInstance{"default", "i1", true});
  ASSERT_FALSE(world.node("i1").task_ids.empty());
  // Until then it does not join: its tasks still hold what they reserved.
  const Outcome joined = world.must(ConnectInstance{test::registration("i1", {idle_gpu()}), 2});
  EXPECT_FALSE(std::get<ConnectReply>(joined.reply).stop_first.empty());
  EXPECT_TRUE(joined.effects.changed_records.empty());
  world.must(Expire{});
  EXPECT_TRUE(world.node("i1").task_ids.empty());
  world.connect("i1", {idle_gpu()}, 2);
  EXPECT_EQ(world.node("i1").status, InstanceStatus::kActive);
  EXPECT_EQ(world.node("i1").number, 2);
}

TEST(ReducerLifeTest, AnInstanceThatRegistersHasNothingRunning) {
  World world;
  for (const bool deregistered : {false, true}) {
    SCOPED_TRACE(deregistered);
    if (deregistered) {
      world.connect("i1", {idle_gpu()});
      world.must(DeregisterInstance{"default", "i1", false});
    }
    const Outcome outcome =
        world.must(ConnectInstance{test::registration("i1", {idle_gpu()}), 7, {"0123", "4567"}});
    EXPECT_NE(std::get<ConnectReply>(outcome.reply).stop_first.find("2 task(s)"),
              std::string::npos);
    EXPECT_TRUE(outcome.effects.changed_records.empty());
  }
}

TEST(ReducerLifeTest, ReportsOfAnotherConnectionAreNotBelieved) {
  World world = world_with_tasks(1);
  world.connect("i1", {idle_gpu()}, 5);
  const std::string id = world.state.tasks.begin()->first;
  struct Row {
    std::optional<std::int64_t> epoch;
    bool believed;
  };
  const Row rows[] = {{1, false}, {4, false}, {6, false}, {5, true}, {{}, true}};
  for (const Row& row : rows) {
    const ObserveTasks report{"i1", {{id, {running("c")}}}, row.epoch};
    if (row.believed) {
      world.must(report);
    } else {
      EXPECT_EQ(world.refused(report).code, ErrorCode::kConflict);
    }
  }
  EXPECT_EQ(world.task(id).last_status, TaskStatus::kRunning);
  world.must(DeregisterInstance{"default", "i1", true});
  EXPECT_EQ(world.refused(ObserveTasks{"i1", {}, 5}).code, ErrorCode::kConflict);
}

TEST(ReducerLifeTest, ExpireIsBoundedAndGoesOn) {
  const std::size_t many = limits::kExpiredPerCommand + 500;
  World world;
  for (std::size_t i = 0; i < many; ++i) {
    const std::string id = std::to_string(i);
    Task task;
    task.id = id;
    task.last_status = TaskStatus::kStopped;
    world.state.tasks.emplace(id, task);
  }
  world.now_ms += limits::kStoppedTaskRetentionMs;
  Outcome outcome = world.must(Expire{});
  EXPECT_EQ(outcome.effects.changed_records.size(), limits::kExpiredPerCommand);
  EXPECT_TRUE(std::get<BoundedReply>(outcome.reply).more);
  outcome = world.must(Expire{});
  EXPECT_EQ(outcome.effects.changed_records.size(), 500U);
  EXPECT_FALSE(std::get<BoundedReply>(outcome.reply).more);
  EXPECT_TRUE(world.state.tasks.empty());
}

TEST(ReducerLifeTest, CountsHaveBounds) {
  World world;
  for (std::size_t i = world.state.families.size(); i < limits::kFamilies; ++i) {
    world.state.families["f" + std::to_string(i)];
  }
  const auto family = world.refused(RegisterTaskDefinition{test::definition("x", {})});
  EXPECT_EQ(family.code, ErrorCode::kLimitExceeded);
  EXPECT_EQ(family.message.rfind("family: there are 10000 families", 0), 0U) << family.message;
  world.must(RegisterTaskDefinition{test::definition("f7", {container("c")})});

  for (std::size_t i = 0; i < limits::kInstancesPerCluster; ++i) {
    Instance instance;
    instance.registration.id = "n" + std::to_string(i);
    instance.registration.cluster = "default";
    add_instance(world.state, std::move(instance));
  }
  const auto full = world.refused(ConnectInstance{test::registration("i1", {}), 1});
  EXPECT_EQ(full.code, ErrorCode::kLimitExceeded);
  // One that is known may come back.
  world.must(ConnectInstance{world.node("n3").registration, 1});
  world.must(CreateCluster{"blue"});
  world.must(ConnectInstance{test::registration("i1", {}, "blue"), 1});
}

TEST(ReducerLifeTest, RevisionsOfADeletedFamilyAreNotUsedTwice) {
  World world;
  world.define("f", {container("c")});
  world.define("f", {container("c")});
  world.must(DeregisterTaskDefinition{{"f", 1}});
  world.must(DeregisterTaskDefinition{{"f", 2}});
  world.must(DeleteTaskDefinitions{{{"f", 2}, {"f", 1}}});
  world.must(Expire{});
  EXPECT_TRUE(world.state.families.at("f").revisions.empty());
  world.define("f", {container("c")});
  EXPECT_EQ(latest_definition(world.state, "f")->revision, 3);
}

}  // namespace
}  // namespace cotenant::core
