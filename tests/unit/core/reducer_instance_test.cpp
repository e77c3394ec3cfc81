// Agents that join, return, change and go.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "core/placement/placement_policy.h"
#include "core/query/query.h"
#include "world.h"

namespace cotenant::core {
namespace {

using test::container;
using test::idle_gpu;
using test::registration;
using test::World;

const std::set<RecordRef> kI1Changed = {{RecordKind::kInstance, "i1"}};

TEST(ConnectInstanceTest, ANewInstanceJoins) {
  World world;
  const Outcome outcome = world.must(ConnectInstance{registration("i1", {idle_gpu()}), 4});
  EXPECT_EQ(outcome.effects.changed_records, kI1Changed);
  EXPECT_TRUE(outcome.effects.notify_tasks.empty());
  const Instance& node = world.node("i1");
  EXPECT_EQ(node.number, 1);
  EXPECT_EQ(node.status, InstanceStatus::kActive);
  EXPECT_EQ(node.registered_at_ms, 1000);
  EXPECT_TRUE(node.agent_connected);
  EXPECT_EQ(node.connection_epoch, 4);
  EXPECT_EQ(node.gpus.size(), 1U);
  EXPECT_EQ(node.free_cpu_units(), 16 * 1024);
  EXPECT_EQ(node.free_memory_mib(), 64 * 1024);

  world.connect("i0", {});
  EXPECT_EQ(world.node("i0").number, 2) << "numbers follow registration, not the id";
}

TEST(ConnectInstanceTest, ItsClusterMustExist) {
  World world;
  const base::Error error = world.refused(ConnectInstance{registration("i1", {}, "nope"), 1});
  EXPECT_EQ(error.code, base::ErrorCode::kClusterNotFound);
  EXPECT_NE(error.message.find("'nope'"), std::string::npos) << error.message;
}

// What an agent may change when it comes back, with and without a task on its GPU.
TEST(ConnectInstanceTest, ReconnectRules) {
  struct Row {
    std::string_view name;
    bool gpu_in_use;
    std::function<void(ConnectInstance&)> change;
    bool want_accepted;
    bool want_record_changed;
    std::string_view want_in_error;
    std::string_view want_unavailable = {};  // of the GPU that is in use
  };
  const Row rows[] = {
      {"nothing", true, [](ConnectInstance&) {}, true, false, ""},
      {"a higher epoch", true, [](ConnectInstance& c) { c.epoch = 8; }, true, false, ""},
      {"an older epoch", true, [](ConnectInstance& c) { c.epoch = 6; }, false, false, "epoch 7"},
      {"an older epoch of an idle instance", false, [](ConnectInstance& c) { c.epoch = 0; }, false,
       false, "epoch 7"},
      {"another version", true, [](ConnectInstance& c) { c.registration.agent_version = "0.2.0"; },
       true, true, ""},
      {"another attribute", true,
       [](ConnectInstance& c) { c.registration.attributes["zone"] = "b"; }, true, true, ""},
      {"another cluster", false, [](ConnectInstance& c) { c.registration.cluster = "other"; },
       false, false, "is registered in cluster 'default', not in 'other'"},
      {"an unknown cluster", false, [](ConnectInstance& c) { c.registration.cluster = "nope"; },
       false, false, "'nope' does not exist"},
      {"a GPU more, in use", true,
       [](ConnectInstance& c) {
         c.registration.gpus.push_back({"GPU-new", "H100", 80000, 48});
       },
       true, true, ""},
      {"a GPU more, idle", false,
       [](ConnectInstance& c) {
         c.registration.gpus.push_back({"GPU-new", "H100", 80000, 48});
       },
       true, true, ""},
      {"a GPU lost, in use", true, [](ConnectInstance& c) { c.registration.gpus.clear(); }, true,
       true, "", "it is not there any more"},
      {"another GPU instead of the one in use", true,
       [](ConnectInstance& c) {
         c.registration.gpus = {{"GPU-new", "H100", 80000, 48}};
       },
       true, true, "", "it is not there any more"},
      {"a GPU whose driver does not answer, in use", true,
       [](ConnectInstance& c) { c.registration.gpus[0].unavailable = "no driver"; }, true, true, "",
       "no driver"},
      {"a GPU lost, idle", false, [](ConnectInstance& c) { c.registration.gpus.clear(); }, true,
       true, ""},
      {"less memory, which still holds what is held", true,
       [](ConnectInstance& c) { c.registration.gpus[0].memory_mib = 1000; }, true, true, ""},
      {"less memory than is held", true,
       [](ConnectInstance& c) { c.registration.gpus[0].memory_mib = 999; }, true, true, "",
       "it is smaller now than what its containers hold"},
      {"unreadable memory, in use", true,
       [](ConnectInstance& c) { c.registration.gpus[0].memory_mib.reset(); }, true, true, "",
       "it is smaller now than what its containers hold"},
      {"fewer client slots than are taken", true,
       [](ConnectInstance& c) { c.registration.gpus[0].client_slots = 1; }, true, true, "",
       "it is smaller now than what its containers hold"},
      {"unreadable memory, idle", false,
       [](ConnectInstance& c) { c.registration.gpus[0].memory_mib.reset(); }, true, true, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    World world;
    world.must(CreateCluster{"other"});
    world.connect("i1", {idle_gpu()}, 7);
    world.define("llm", {container("main", SharedGpu{1000, {}})});
    world.define("cpu", {container("main")});
    world.run_one(row.gpu_in_use ? "llm" : "cpu");
    world.must(DisconnectInstance{"i1", 7});

    ConnectInstance command{registration("i1", {idle_gpu()}), 7};
    row.change(command);
    if (!row.want_accepted) {
      const base::Error error = world.refused(command);
      EXPECT_TRUE(base::is_client_fault(error.code)) << error.message;
      EXPECT_NE(error.message.find(row.want_in_error), std::string::npos) << error.message;
      EXPECT_FALSE(world.node("i1").agent_connected);
      continue;
    }
    const Outcome outcome = world.must(command);
    EXPECT_EQ(outcome.effects.changed_records,
              row.want_record_changed ? kI1Changed : std::set<RecordRef>{});
    const Instance& node = world.node("i1");
    EXPECT_TRUE(node.agent_connected);
    EXPECT_EQ(node.connection_epoch, command.epoch);
    if (row.want_unavailable.empty()) {
      EXPECT_EQ(node.registration, command.registration);
      EXPECT_EQ(node.gpus.size(), command.registration.gpus.size());
    } else {
      const std::size_t gpu = node.gpus.find("GPU-i1-0").value_or(99);
      ASSERT_LT(gpu, node.gpus.size());
      EXPECT_EQ(node.gpus.device(gpu).unavailable, row.want_unavailable);
      EXPECT_FALSE(node.gpus.is_healthy(gpu));
      EXPECT_EQ(node.gpus.container_count(gpu), 1) << "it keeps what it holds";
    }
    EXPECT_EQ(node.version, row.want_record_changed ? 2 : 1);
    EXPECT_EQ(node.number, 1);
    EXPECT_EQ(node.registered_at_ms, 1000);
    EXPECT_EQ(node.task_ids.size(), 1U) << "the reservation outlives the connection";
    EXPECT_EQ(node.used_cpu_units, 256);
  }
}

TEST(ConnectInstanceTest, AGpuThatIsLostInUseTakesNothingUntilItIsBack) {
  World world;
  world.connect("i1", {idle_gpu()}, 1);
  world.define("llm", {container("main", SharedGpu{1000, {}})});
  const std::string kept = world.run_one("llm");
  const InstanceRegistration whole = registration("i1", {idle_gpu()});
  InstanceRegistration without = whole;
  without.gpus.clear();
  world.must(ConnectInstance{without, 2});
  const RunTaskReply refused = world.run(World::run_command("llm"));
  ASSERT_EQ(refused.failures.size(), 1U);
  EXPECT_EQ(refused.failures[0].reason, "RESOURCE:GPU");
  EXPECT_NE(refused.failures[0].detail.find("out of service (it is not there any more)"),
            std::string::npos)
      << refused.failures[0].detail;
  // Said again, nothing changes.
  const Outcome again = world.must(ConnectInstance{without, 3});
  EXPECT_TRUE(again.effects.changed_records.empty());

  world.must(ConnectInstance{whole, 4});
  EXPECT_EQ(world.node("i1").registration, whole);
  world.run_one("llm");
  EXPECT_EQ(world.node("i1").gpus.container_count(0), 2);
  EXPECT_TRUE(world.node("i1").task_ids.contains(kept));
}

TEST(ConnectInstanceTest, LostGpusDoNotGrowBeyondTheBound) {
  World world;
  std::vector<test::GpuSetup> gpus(base::limits::kGpusPerInstance, idle_gpu());
  world.connect("i1", gpus, 1);
  world.define("llm", {container("main", SharedGpu{1000, {}})});
  world.run_one("llm");
  InstanceRegistration others = registration("i1", gpus);
  for (GpuDevice& gpu : others.gpus) gpu.uuid += "-other";
  const base::Error error = world.refused(ConnectInstance{others, 2});
  EXPECT_EQ(error.code, base::ErrorCode::kInvalidParameter);
}

TEST(ConnectInstanceTest, ChangedGpusOfAnIdleInstanceCount) {
  World world;
  world.connect("i1", {idle_gpu(1000)});
  world.connect("i1", {idle_gpu(1000), idle_gpu(5000)}, 2);
  world.define("llm", {container("main", SharedGpu{4000, {}})});
  const std::string id = world.run_one("llm");
  EXPECT_EQ(world.task(id).containers[0].gpu_uuids, std::vector<std::string>{"GPU-i1-1"});
}

TEST(DisconnectInstanceTest, OnlyThePresentConnectionCounts) {
  struct Row {
    std::string_view name;
    std::string id;
    std::int64_t epoch;
    bool want_connected;
  };
  const Row rows[] = {
      {"the present connection", "i1", 5, false},
      {"an older one, closed because of the newer", "i1", 4, true},
      {"one that never was", "i1", 6, true},
      {"an unknown instance", "i2", 5, true},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    World world;
    world.connect("i1", {idle_gpu()}, 5);
    const Outcome outcome = world.must(DisconnectInstance{row.id, row.epoch});
    EXPECT_EQ(world.node("i1").agent_connected, row.want_connected);
    EXPECT_TRUE(outcome.effects.changed_records.empty()) << "the connection is not durable";
    EXPECT_EQ(world.state.instances.size(), 1U);
  }
}

TEST(DisconnectInstanceTest, NothingIsPlacedUntilItIsBack) {
  World world;
  world.connect("i1", {idle_gpu()}, 1);
  world.define("llm", {container("main", SharedGpu{1000, {}})});
  const std::string kept = world.run_one("llm");
  world.must(DisconnectInstance{"i1", 1});
  const RunTaskReply reply = world.run(World::run_command("llm"));
  ASSERT_EQ(reply.failures.size(), 1U);
  EXPECT_EQ(reply.failures[0].reason, "AGENT");
  EXPECT_EQ(reply.failures[0].instance_id, "i1");
  EXPECT_EQ(world.node("i1").task_ids, std::set<std::string>{kept});

  world.connect("i1", {idle_gpu()}, 2);
  world.run_one("llm");
  EXPECT_EQ(world.node("i1").gpus.container_count(0), 2);
}

// The index keeps nodes by their attributes: it must hear of those that change later.
TEST(PutAttributesTest, ConstraintsSeeThemAtOnce) {
  for (const std::string_view policy : placement_policy_names()) {
    SCOPED_TRACE(policy);
    World world;
    world.define("half", {container("main", SharedGpu{test::kGpuMib / 2, {}})});
    for (const std::string id : {"i1", "i2", "i3"}) world.connect(id, {idle_gpu()});
    world.must(UpdateClusterSettings{"default", {{kPlacementPolicySetting, std::string(policy)}}});
    RunTask run = World::run_command("half");
    run.placement.member_of = {Query::parse("attribute:zone == a").value()};
    EXPECT_EQ(world.run(run).failures.size(), 1U);
    world.must(PutAttributes{"default", {{"i2", "zone", "a"}}});
    const RunTaskReply placed = world.run(run);
    ASSERT_EQ(placed.task_ids.size(), 1U);
    EXPECT_EQ(world.task(placed.task_ids[0]).instance_id, "i2");
    world.must(DeleteAttributes{"default", {{"i2", "zone", ""}}});
    EXPECT_EQ(world.run(run).failures.size(), 1U);
  }
}

TEST(ActiveInstancesTest, AreThoseOfTheClusterInOrderOfRegistration) {
  World world;
  world.must(CreateCluster{"other"});
  for (const std::string id : {"c", "a", "b", "d"}) world.connect(id, {});
  world.must(ConnectInstance{registration("x", {}, "other"), 1});
  world.node("a").status = InstanceStatus::kDraining;
  world.node("d").status = InstanceStatus::kInactive;
  const auto active = active_instances(world.state, "default");
  ASSERT_EQ(active.size(), 2U);
  EXPECT_EQ(active[0]->registration.id, "c");
  EXPECT_EQ(active[1]->registration.id, "b");
}

}  // namespace
}  // namespace cotenant::core
