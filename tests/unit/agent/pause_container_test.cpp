#include "agent/pause_container.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "agent/container_settings.h"
#include "agent/pause_image.h"
#include "logic_world.h"

namespace cotenant::agent {
namespace {

using core::ContainerStatus;
using core::NamespaceMode;
using core::NetworkMode;

core::DesiredTask own_network() {
  core::DesiredTask desired = task("t", {plain("web"), plain("side", false)});
  desired.network_mode = NetworkMode::kAwsvpc;
  return desired;
}

TEST(PauseContainerTest, WhichTasksHaveOne) {
  struct Case {
    NetworkMode network;
    NamespaceMode pid;
    NamespaceMode ipc;
    bool want;
  };
  const Case cases[] = {
      {NetworkMode::kBridge, NamespaceMode::kOwn, NamespaceMode::kOwn, false},
      {NetworkMode::kHost, NamespaceMode::kHost, NamespaceMode::kHost, false},
      {NetworkMode::kAwsvpc, NamespaceMode::kOwn, NamespaceMode::kOwn, true},
      {NetworkMode::kNone, NamespaceMode::kTask, NamespaceMode::kOwn, true},
      {NetworkMode::kBridge, NamespaceMode::kOwn, NamespaceMode::kTask, true},
  };
  for (const Case& test : cases) {
    core::DesiredTask desired = task("t", {plain("web")});
    desired.network_mode = test.network;
    desired.settings.pid_mode = test.pid;
    desired.settings.ipc_mode = test.ipc;
    add_pause_container(desired);
    ASSERT_EQ(desired.containers.size(), test.want ? 2U : 1U);
    EXPECT_EQ(is_pause(desired.containers.front()), test.want);
    EXPECT_EQ(desired.containers.back().definition.life.depends_on.size(), test.want ? 1U : 0U);
  }
}

TEST(PauseContainerTest, OthersJoinWhatItHolds) {
  core::DesiredTask desired = own_network();
  desired.settings.pid_mode = NamespaceMode::kTask;
  desired.settings.ipc_mode = NamespaceMode::kTask;
  add_pause_container(desired);
  BuiltSpec pause;
  ASSERT_TRUE(add_settings(plan_container(desired, desired.containers[0]), "i", true, pause));
  EXPECT_EQ(pause.spec.network_mode, NetworkMode::kBridge);
  EXPECT_EQ(pause.spec.pid_mode, NamespaceMode::kOwn);
  EXPECT_EQ(pause.spec.ipc_mode, NamespaceMode::kTask);
  EXPECT_EQ(pause.spec.namespace_holder, "");
  BuiltSpec web;
  web.spec.network_mode = NetworkMode::kAwsvpc;
  ASSERT_TRUE(add_settings(plan_container(desired, desired.containers[1]), "i", true, web));
  EXPECT_EQ(web.spec.network_mode, NetworkMode::kAwsvpc);
  EXPECT_EQ(web.spec.pid_mode, NamespaceMode::kTask);
  EXPECT_EQ(web.spec.namespace_holder, "cotenant-family-1-internal.pause-t");
  EXPECT_TRUE(web.spec.ports.empty()) << "the address is the task's own";

  const base::Status refused =
      add_settings(plan_container(desired, desired.containers[0]), "i", false, pause);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("awsvpc needs an engine with a bridge network"),
            std::string::npos);
}

// Carries out every action at once.
class PauseBench {
 public:
  void settle() {
    for (int round = 0; round < 100; ++round) {
      logic.observe(logic.begin_snapshot(), world.snapshot());
      const std::vector<Action> actions = logic.step(world.now_ms);
      if (actions.empty()) return;
      for (const Action& action : actions) {
        const bool fails = std::holds_alternative<CreateContainer>(action.what) && fail_creates;
        logic.finish({action.id, fails ? base::fail(base::ErrorCode::kClient, "no bridge")
                                       : world.apply(action)},
                     world.now_ms);
        if (std::holds_alternative<StopContainer>(action.what)) {
          stopped.push_back(world.entries.at(std::get<StopContainer>(action.what).runtime_id)
                                .plan.container.definition.name);
        }
      }
    }
  }
  std::vector<core::ContainerObservation> seen() const {
    const auto tasks = logic.observations();
    return tasks.empty() ? std::vector<core::ContainerObservation>() : tasks.front().containers;
  }

  bool fail_creates = false;
  std::vector<std::string> stopped;
  LogicWorld world;
  AgentLogic logic{LogicOptions()};
};

TEST(PauseContainerTest, HoldsTheTasksAddressAndGoesLast) {
  PauseBench bench;
  core::DesiredTask desired = own_network();
  bench.logic.desire_all({desired});
  bench.settle();
  ASSERT_NE(bench.world.named(kPauseName), nullptr);
  bench.world.named(kPauseName)->state.address = "172.17.0.2";
  bench.settle();
  ASSERT_EQ(bench.seen().size(), 2U) << "it is not shown";
  for (const core::ContainerObservation& container : bench.seen()) {
    EXPECT_EQ(container.status, ContainerStatus::kRunning);
    EXPECT_EQ(container.address, "172.17.0.2");
  }
  // The next agent finds it again, by its labels, and shows it no more than this one.
  bench.logic = AgentLogic(LogicOptions());
  bench.logic.observe(bench.logic.begin_snapshot(), bench.world.snapshot());
  EXPECT_EQ(bench.seen().size(), 2U);
  bench.logic.desire_all({desired});
  bench.settle();
  EXPECT_EQ(bench.world.entries.size(), 3U);

  desired.stop = true;
  bench.logic.desire_all({desired});
  bench.settle();
  ASSERT_EQ(bench.stopped.size(), 3U);
  EXPECT_EQ(bench.stopped.back(), kPauseName);
}

TEST(PauseContainerTest, ItsEndIsTheTasksEnd) {
  PauseBench bench;
  bench.logic.desire_all({own_network()});
  bench.settle();
  bench.world.exit(*bench.world.named(kPauseName), 0);
  bench.settle();
  for (const core::ContainerObservation& container : bench.seen()) {
    EXPECT_EQ(container.status, ContainerStatus::kStopped) << container.name;
  }
}

TEST(PauseContainerTest, ItsFailureIsTold) {
  PauseBench bench;
  bench.fail_creates = true;
  bench.logic.desire_all({own_network()});
  bench.settle();
  ASSERT_EQ(bench.seen().size(), 2U);
  EXPECT_EQ(bench.seen()[0].status, ContainerStatus::kStopped);
  EXPECT_EQ(bench.seen()[0].reason,
            "ResourceInitializationError: the task's own network or processes: "
            "CannotCreateContainerError: no bridge");
}

TEST(PauseContainerTest, ItsFailureIsToldWithTheEndThatItBrings) {
  PauseBench bench;
  bench.logic.desire_all({own_network()});
  bench.logic.observe(bench.logic.begin_snapshot(), bench.world.snapshot());
  // Its image is there first; the others wait for theirs when its creation fails.
  for (const Action& action : bench.logic.step(bench.world.now_ms)) {
    const auto* pull = std::get_if<PullImage>(&action.what);
    if (pull == nullptr || pull->image != pause_image_name()) continue;
    bench.logic.finish({action.id, {}}, bench.world.now_ms);
  }
  bench.logic.observe(bench.logic.begin_snapshot(), bench.world.snapshot());
  for (const Action& action : bench.logic.step(bench.world.now_ms)) {
    ASSERT_TRUE(std::holds_alternative<CreateContainer>(action.what));
    bench.logic.finish({action.id, base::fail(base::ErrorCode::kClient, "no bridge")},
                       bench.world.now_ms);
  }
  bench.logic.step(bench.world.now_ms);  // before the next snapshot
  ASSERT_EQ(bench.seen().size(), 2U);
  for (const core::ContainerObservation& container : bench.seen()) {
    ASSERT_EQ(container.status, ContainerStatus::kStopped);
    EXPECT_NE(container.reason.find("no bridge"), std::string::npos) << container.reason;
  }
}

TEST(PauseContainerTest, TheImageIsATarOfOneProgram) {
  const std::string tar = pause_image_tar();
  EXPECT_EQ(tar.size() % 512, 0U);
  EXPECT_EQ(tar.substr(0, 6), std::string("pause\0", 6));
  EXPECT_EQ(tar.substr(257, 6), std::string("ustar\0", 6));
  EXPECT_EQ(tar.substr(512, 4),
            "\x7f"
            "ELF");
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(tar[i]);
  }
  EXPECT_EQ(std::stoul(tar.substr(148, 6), nullptr, 8), sum);
  EXPECT_EQ(pause_image_name().rfind("cotenant/pause:", 0), 0U);
}

}  // namespace
}  // namespace cotenant::agent
