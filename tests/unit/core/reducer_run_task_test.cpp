#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "world.h"

namespace cotenant::core {
namespace {

using test::container;
using test::idle_gpu;
using test::kGpuMib;
using test::World;
using Uuids = std::vector<std::string>;

World world_with_gpus(std::size_t gpus) {
  World world;
  world.connect("i1", std::vector<test::GpuSetup>(gpus, idle_gpu()));
  world.define("half", {container("main", SharedGpu{kGpuMib / 2, 50})});
  world.define("whole", {container("main", WholeGpus{1, false})});
  world.define("cpu", {container("main")});
  return world;
}

TEST(RunTaskTest, MakesATaskThatHoldsItsReservation) {
  World world = world_with_gpus(2);
  world.now_ms = 4000;
  const Outcome outcome = world.must(World::run_command("half"));
  const auto reply = std::get<RunTaskReply>(outcome.reply);
  ASSERT_EQ(reply.task_ids.size(), 1U);
  EXPECT_TRUE(reply.failures.empty());
  const std::string id = reply.task_ids[0];
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(outcome.effects.changed_records,
            (std::set<RecordRef>{{RecordKind::kTask, id},
                                 {RecordKind::kWorkload, "default"},
                                 {RecordKind::kWorkloadShape, "default", 0}}));
  EXPECT_EQ(outcome.effects.notify_tasks,
            (std::map<std::string, std::set<std::string>>{{"i1", {id}}}));

  const Task& task = world.task(id);
  EXPECT_EQ(task.id, id);
  EXPECT_EQ(task.cluster, "default");
  EXPECT_EQ(task.instance_id, "i1");
  EXPECT_EQ(task.family, "half");
  EXPECT_EQ(task.revision, 1);
  EXPECT_EQ(task.group, "family:half");
  EXPECT_EQ(task.last_status, TaskStatus::kPending);
  EXPECT_EQ(task.desired_status, DesiredStatus::kRunning);
  EXPECT_EQ(task.stop_code, StopCode::kNone);
  EXPECT_EQ(task.created_at_ms, 4000);
  EXPECT_EQ(task.started_at_ms, 0);
  ASSERT_EQ(task.containers.size(), 1U);
  EXPECT_EQ(task.containers[0].name, "main");
  EXPECT_EQ(task.containers[0].id.size(), 32U);
  EXPECT_NE(task.containers[0].id, id);
  EXPECT_EQ(task.containers[0].status, ContainerStatus::kPending);
  EXPECT_EQ(task.containers[0].gpu_uuids, Uuids{"GPU-i1-0"});

  const Instance& node = world.node("i1");
  EXPECT_EQ(node.gpus.mode(0), SharingMode::kNvidiaMps);
  EXPECT_EQ(node.gpus.remaining_mib(0), kGpuMib / 2);
  EXPECT_EQ(node.used_cpu_units, 256);
  EXPECT_EQ(node.used_memory_mib, 512);
  EXPECT_EQ(node.task_ids, std::set<std::string>{id});
}

TEST(RunTaskTest, TakesGroupStartedByAndARevision) {
  World world = world_with_gpus(1);
  world.define("cpu", {container("other")});
  RunTask command = World::run_command("cpu");
  command.definition.revision = 1;
  command.group = "service:web";
  command.started_by = "me";
  const Task& task = world.task(world.run(command).task_ids.at(0));
  EXPECT_EQ(task.group, "service:web");
  EXPECT_EQ(task.started_by, "me");
  EXPECT_EQ(task.revision, 1);
  EXPECT_EQ(task.containers[0].name, "main");
  // Without a revision it is the latest.
  EXPECT_EQ(world.task(world.run_one("cpu")).revision, 2);
}

TEST(RunTaskTest, DealsGpusToContainers) {
  struct Row {
    std::string_view name;
    std::vector<GpuRequest> requests;
    std::vector<Uuids> want;
  };
  const Row rows[] = {
      {"shares and a plain container: one GPU",
       {SharedGpu{1000, {}}, NoGpu{}, SharedGpu{2000, {}}},
       {{"GPU-i1-0"}, {}, {"GPU-i1-0"}}},
      {"whole GPUs in the order of the containers",
       {WholeGpus{1, false}, NoGpu{}, WholeGpus{2, false}},
       {{"GPU-i1-0"}, {}, {"GPU-i1-1", "GPU-i1-2"}}},
      {"ALL", {NoGpu{}, WholeGpus{0, true}}, {{}, {"GPU-i1-0", "GPU-i1-1", "GPU-i1-2"}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    World world = world_with_gpus(3);
    std::vector<ContainerDefinition> containers;
    for (const GpuRequest& request : row.requests) {
      containers.push_back(container("c" + std::to_string(containers.size()), request));
    }
    world.define("task", containers);
    const Task& task = world.task(world.run_one("task"));
    for (std::size_t i = 0; i < row.want.size(); ++i) {
      EXPECT_EQ(task.containers[i].gpu_uuids, row.want[i]) << "container " << i;
    }
    std::set<std::string> used;
    for (const Uuids& uuids : row.want) used.insert(uuids.begin(), uuids.end());
    for (std::size_t gpu = 0; gpu < 3; ++gpu) {
      const bool is_used = used.count(test::gpu_uuid("i1", gpu)) > 0;
      EXPECT_EQ(world.node("i1").gpus.mode(gpu) != SharingMode::kIdle, is_used);
    }
  }
}

TEST(RunTaskTest, ACountIsPlacedAsFarAsItFits) {
  World world = world_with_gpus(2);
  const Outcome outcome = world.must(World::run_command("half", 6));
  const auto reply = std::get<RunTaskReply>(outcome.reply);
  EXPECT_EQ(reply.task_ids.size(), 4U);
  ASSERT_EQ(reply.failures.size(), 2U);
  for (const TaskFailure& failure : reply.failures) {
    EXPECT_EQ(failure.reason, "RESOURCE:GPU");
    EXPECT_EQ(failure.instance_id, "i1");
    EXPECT_NE(failure.detail.find("40000 MiB missing"), std::string::npos) << failure.detail;
    // Who holds it: the user can look those tasks up.
    EXPECT_NE(failure.detail.find(reply.task_ids[0]), std::string::npos) << failure.detail;
  }
  EXPECT_EQ(std::set<std::string>(reply.task_ids.begin(), reply.task_ids.end()).size(), 4U);
  EXPECT_EQ(outcome.effects.changed_records.size(), 4U + 2U) << "the tasks, and what was learned";
  EXPECT_EQ(outcome.effects.notify_tasks.at("i1").size(), 4U);
  EXPECT_EQ(world.node("i1").gpus.remaining_mib(0), 0);
  EXPECT_EQ(world.node("i1").gpus.remaining_mib(1), 0);
}

TEST(RunTaskTest, NothingPlacedIsASuccessWithFailures) {
  World world = world_with_gpus(1);
  world.run_one("whole");
  const std::string before = test::dump_reservations(world.state);
  const std::size_t tasks_before = world.state.tasks.size();
  const Outcome outcome = world.must(World::run_command("half", 3));
  const auto reply = std::get<RunTaskReply>(outcome.reply);
  EXPECT_TRUE(reply.task_ids.empty());
  EXPECT_EQ(reply.failures.size(), 3U);
  // That it was asked for is remembered all the same.
  EXPECT_EQ(outcome.effects.changed_records,
            (std::set<RecordRef>{{RecordKind::kWorkload, "default"},
                                 {RecordKind::kWorkloadShape, "default", 1}}));
  EXPECT_TRUE(outcome.effects.notify_tasks.empty());
  EXPECT_EQ(test::dump_reservations(world.state), before);
  EXPECT_EQ(world.state.tasks.size(), tasks_before);
}

TEST(RunTaskTest, Refusals) {
  struct Row {
    std::string_view name;
    std::function<void(RunTask&, World&)> spoil;
    base::ErrorCode want_code;
    std::string_view want_in_message;
  };
  const Row rows[] = {
      {"unknown cluster", [](RunTask& r, World&) { r.cluster = "nope"; },
       base::ErrorCode::kClusterNotFound, "cluster: 'nope' does not exist"},
      {"unknown family", [](RunTask& r, World&) { r.definition.family = "nope"; },
       base::ErrorCode::kClient, "taskDefinition: 'nope' is not registered"},
      {"unknown revision", [](RunTask& r, World&) { r.definition.revision = 7; },
       base::ErrorCode::kClient, "taskDefinition: 'half:7' is not registered"},
      {"override of no container",
       [](RunTask& r, World&) {
         r.overrides = {{"main", {}, {}}, {"nope", {}, {}}};
       },
       base::ErrorCode::kInvalidParameter,
       "overrides.containerOverrides[1].name: 'nope' is no container of half:1, which has main"},
      {"cluster without instances",
       [](RunTask& r, World& w) {
         w.must(CreateCluster{"empty"});
         r.cluster = "empty";
       },
       base::ErrorCode::kInvalidParameter, "No Container Instances were found in your cluster"},
      {"only a draining instance",
       [](RunTask&, World& w) { w.node("i1").status = InstanceStatus::kDraining; },
       base::ErrorCode::kInvalidParameter, "No Container Instances were found in your cluster"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    World world = world_with_gpus(1);
    RunTask command = World::run_command("half");
    row.spoil(command, world);
    const base::Error error = world.refused(command);
    EXPECT_EQ(base::error_name(error.code), base::error_name(row.want_code));
    EXPECT_NE(error.message.find(row.want_in_message), std::string::npos) << error.message;
  }
}

TEST(RunTaskTest, ATokenRepeatsItsAnswer) {
  World world = world_with_gpus(1);
  RunTask command = World::run_command("half", 3);
  command.client_token = "abc";
  command.parameters_digest = "d1";
  const Outcome first = world.must(command);
  const auto first_reply = std::get<RunTaskReply>(first.reply);
  ASSERT_EQ(first_reply.task_ids.size(), 2U);
  ASSERT_EQ(first_reply.failures.size(), 1U);
  EXPECT_EQ(first.effects.changed_records.count({RecordKind::kClientToken, "default/abc"}), 1U);

  // Even when the room is there by now, a repetition starts nothing.
  world.observe(first_reply.task_ids[0], {test::exited("main", 0)});
  const std::string before = test::dump(world.state);
  const Outcome second = world.must(command);
  const auto second_reply = std::get<RunTaskReply>(second.reply);
  EXPECT_EQ(second_reply.task_ids, first_reply.task_ids);
  ASSERT_EQ(second_reply.failures.size(), 1U);
  EXPECT_EQ(second_reply.failures[0].detail, first_reply.failures[0].detail);
  EXPECT_EQ(second_reply.failures[0].reason, first_reply.failures[0].reason);
  EXPECT_TRUE(second.effects.changed_records.empty());
  EXPECT_EQ(test::dump(world.state), before);
}

TEST(RunTaskTest, ATokenWithOtherParametersIsAConflict) {
  World world = world_with_gpus(1);
  RunTask command = World::run_command("cpu");
  command.client_token = "abc";
  command.parameters_digest = "d1";
  world.run(command);
  command.parameters_digest = "d2";
  const base::Error error = world.refused(command);
  EXPECT_EQ(error.code, base::ErrorCode::kConflict);
  EXPECT_NE(error.message.find("clientToken: 'abc'"), std::string::npos) << error.message;

  // In another cluster it is another token.
  world.must(CreateCluster{"other"});
  world.must(ConnectInstance{test::registration("i2", {}, "other"), 1});
  command.cluster = "other";
  EXPECT_EQ(world.run(command).task_ids.size(), 1U);

  // And after its time it is free again.
  world.now_ms += base::limits::kClientTokenRetentionMs;
  world.must(Expire{});
  command.cluster = "default";
  EXPECT_EQ(world.run(command).task_ids.size(), 1U);
}

TEST(RunTaskTest, ATokenIsNotSpentWhenNothingWasPlaced) {
  World world = world_with_gpus(1);
  const std::string blocker = world.run_one("whole");
  RunTask command = World::run_command("half");
  command.client_token = "abc";
  EXPECT_TRUE(world.run(command).task_ids.empty());
  EXPECT_TRUE(world.state.client_tokens.empty());
  world.observe(blocker, {test::exited("main", 0)});
  EXPECT_EQ(world.run(command).task_ids.size(), 1U);
}

TEST(RunTaskTest, TheNumberOfTokensIsBounded) {
  World world = world_with_gpus(0);
  for (std::size_t i = 0; i < base::limits::kClientTokens; ++i) {
    const std::string key = "default/t" + std::to_string(i);
    world.state.client_tokens.emplace(key, ClientToken{key, "", 0, {}, {}});
  }
  RunTask command = World::run_command("cpu");
  command.client_token = "one-too-many";
  const base::Error error = world.refused(command);
  EXPECT_EQ(error.code, base::ErrorCode::kThrottling);
  EXPECT_NE(error.message.find("clientToken"), std::string::npos) << error.message;
  command.client_token.clear();
  EXPECT_EQ(world.run(command).task_ids.size(), 1U);
}

TEST(RunTaskTest, SameSeedSameIds) {
  World first = world_with_gpus(2);
  World second = world_with_gpus(2);
  EXPECT_EQ(first.run(World::run_command("half", 3)).task_ids,
            second.run(World::run_command("half", 3)).task_ids);
  EXPECT_EQ(test::dump(first.state), test::dump(second.state));
}

// The API's bound is the codec's to check; here anything else is a programmer's error.
TEST(RunTaskDeathTest, ACountOutOfBoundsStopsTheProgram) {
  World world = world_with_gpus(1);
  EXPECT_DEATH(world.must(World::run_command("cpu", 0)), "assertion failed");
  EXPECT_DEATH(world.must(World::run_command("cpu", base::limits::kRunTaskCountMax + 1)),
               "assertion failed");
}

// "ALL" beside any other request asks for more GPUs than there can be. The codec refuses it at
// registration; here it must not deal out GPUs that the task does not have.
TEST(RunTaskDeathTest, AllBesideAnotherRequestStopsTheProgram) {
  for (const GpuRequest& other : {GpuRequest{WholeGpus{0, true}}, GpuRequest{WholeGpus{1, false}},
                                  GpuRequest{SharedGpu{1000, {}}}}) {
    World world = world_with_gpus(1);
    world.define("greedy", {container("a", WholeGpus{0, true}), container("b", other)});
    EXPECT_DEATH(world.must(World::run_command("greedy")), "assertion failed");
  }
}

}  // namespace
}  // namespace cotenant::core
