// What an agent is told to run.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/container_override.h"
#include "world.h"

namespace cotenant::core {
namespace {

using test::container;
using test::idle_gpu;
using test::World;
using Words = std::vector<std::string>;
using Environment = std::vector<EnvironmentVariable>;

TEST(OverrideTest, ReplacesCommandAndSetsEnvironment) {
  struct Row {
    std::string_view name;
    std::vector<ContainerOverride> overrides;
    Words want_command;
    Environment want_environment;
  };
  const Words command = {"serve"};
  const Environment environment = {{"A", "1"}, {"B", "2"}};
  const Row rows[] = {
      {"none", {}, command, environment},
      {"of another container", {{"other", Words{"x"}, {{"A", "9"}}}}, command, environment},
      {"command", {{"main", Words{"sh", "-c"}, {}}}, {"sh", "-c"}, environment},
      {"empty command: the image's", {{"main", Words{}, {}}}, {}, environment},
      {"environment in place and added",
       {{"main", {}, {{"B", "9"}, {"C", "3"}}}},
       command,
       {{"A", "1"}, {"B", "9"}, {"C", "3"}}},
      {"the same name twice: the last",
       {{"main", {}, {{"C", "1"}, {"C", "2"}}}},
       command,
       {{"A", "1"}, {"B", "2"}, {"C", "2"}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    ContainerDefinition main = container("main");
    main.command = command;
    main.environment = environment;
    const ContainerDefinition got = with_override(main, row.overrides);
    EXPECT_EQ(got.command, row.want_command);
    EXPECT_EQ(got.environment, row.want_environment);
  }
}

TEST(OverrideTest, EnvironmentFilesComeInPlaceOfTheDefinitions) {
  ContainerDefinition main = container("main");
  main.host.environment_files = {"/etc/a.env"};
  ContainerOverride entry;
  entry.name = "main";
  EXPECT_EQ(with_override(main, {entry}).host.environment_files, Words{"/etc/a.env"});
  entry.environment_files = Words{"/etc/b.env"};
  EXPECT_EQ(with_override(main, {entry}).host.environment_files, Words{"/etc/b.env"});
  entry.environment_files = Words{};
  EXPECT_EQ(with_override(main, {entry}).host.environment_files, Words{});
}

TEST(DesiredTest, FollowsTheTaskUntilItIsStopped) {
  World world;
  world.connect("i1", {idle_gpu()});
  TaskDefinition definition =
      test::definition("llm", {container("main", SharedGpu{1000, {}}), container("side")});
  definition.network_mode = NetworkMode::kNone;
  world.must(RegisterTaskDefinition{definition});
  RunTask command = World::run_command("llm");
  command.overrides = {{"main", Words{"other"}, {{"N", "1"}}}};
  const std::string id = world.run(command).task_ids.at(0);

  std::vector<DesiredTask> desired = desired_tasks(world.state, "i1");
  ASSERT_EQ(desired.size(), 1U);
  EXPECT_EQ(desired[0].task_id, id);
  EXPECT_EQ(desired[0].family, "llm");
  EXPECT_EQ(desired[0].revision, 1);
  EXPECT_EQ(desired[0].network_mode, NetworkMode::kNone);
  EXPECT_FALSE(desired[0].stop);
  ASSERT_EQ(desired[0].containers.size(), 2U);
  const DesiredContainer& main = desired[0].containers[0];
  EXPECT_EQ(main.id, world.task(id).containers[0].id);
  EXPECT_EQ(main.definition.command, Words{"other"});
  EXPECT_EQ(main.definition.environment, (Environment{{"N", "1"}}));
  EXPECT_EQ(main.gpu_uuids, Words{"GPU-i1-0"});
  EXPECT_FALSE(main.started);
  EXPECT_TRUE(desired[0].containers[1].definition.command.empty());
  EXPECT_TRUE(desired[0].containers[1].gpu_uuids.empty());

  world.observe(id, {test::running("main")});
  desired = desired_tasks(world.state, "i1");
  EXPECT_TRUE(desired[0].containers[0].started);
  EXPECT_FALSE(desired[0].containers[1].started);

  world.must(StopTask{"default", id, ""});
  EXPECT_TRUE(desired_tasks(world.state, "i1").at(0).stop);

  world.observe(id, {test::exited("main", 143), test::gone("side")});
  EXPECT_TRUE(desired_tasks(world.state, "i1").empty());
}

TEST(DesiredTest, IsPerInstance) {
  World world;
  world.connect("i1", {});
  world.connect("i2", {});
  world.define("cpu", {container("main")});
  const std::string id = world.run_one("cpu");
  EXPECT_EQ(desired_tasks(world.state, "i1").at(0).task_id, id);
  EXPECT_TRUE(desired_tasks(world.state, "i2").empty());
  EXPECT_TRUE(desired_tasks(world.state, "nobody").empty());
}

TEST(TaskCountsTest, CountsPendingAndRunning) {
  World world;
  world.connect("i1", {});
  world.define("cpu", {container("main")});
  const auto ids = world.run(World::run_command("cpu", 4)).task_ids;
  world.observe(ids[0], {test::running("main")});
  world.observe(ids[1], {test::running("main")});
  world.must(StopTask{"default", ids[1], ""});
  world.observe(ids[1], {test::running("main")});  // STOPPING
  world.observe(ids[2], {test::exited("main", 0)});
  const TaskCounts counts = count_tasks(world.state, world.node("i1"));
  EXPECT_EQ(counts.running, 1);
  EXPECT_EQ(counts.pending, 1);
}

// After a load only the records are there; reserve() makes the rest again.
TEST(ReserveTest, RebuildsFromRecordsWhatRunningBuiltUp) {
  World world;
  world.connect("i1", {idle_gpu(), idle_gpu(), idle_gpu()});
  world.define("share", {container("a", SharedGpu{1000, {}}), container("b", SharedGpu{2000, {}})});
  world.define("whole", {container("main", WholeGpus{2, false})});
  world.run_one("share");
  world.run_one("whole");
  const std::string before = test::dump_reservations(world.state);

  State loaded = world.state;
  Instance& node = loaded.instances.at("i1");
  node.used_cpu_units = node.used_memory_mib = 0;
  node.task_ids.clear();
  node.gpus = GpuLedger(node.registration.gpus);
  for (const auto& [id, task] : loaded.tasks) reserve(loaded, task);
  EXPECT_EQ(test::dump_reservations(loaded), before);
}

TEST(ReserveDeathTest, ReservingOrReleasingTwiceStopsTheProgram) {
  World world;
  world.connect("i1", {idle_gpu()});
  world.define("cpu", {container("main")});
  const std::string id = world.run_one("cpu");
  EXPECT_DEATH(reserve(world.state, world.task(id)), "assertion failed");
  release(world.state, world.task(id));
  EXPECT_DEATH(release(world.state, world.task(id)), "assertion failed");
}

}  // namespace
}  // namespace cotenant::core
