// The order of a task's containers, health and restarts, in the whole of AgentLogic.
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/agent_logic.h"
#include "logic_world.h"

namespace cotenant::agent {
namespace {

using core::ContainerStatus;
using core::DependencyCondition;

core::DesiredContainer after(core::DesiredContainer container, const std::string& name,
                             DependencyCondition condition) {
  container.definition.life.depends_on.push_back({name, condition});
  return container;
}

// Carries out every action at once and writes it down by the container's name.
class OrderBench {
 public:
  std::vector<std::string> settle() {
    std::vector<std::string> done;
    for (int round = 0; round < 100; ++round) {
      logic.observe(logic.begin_snapshot(), world.snapshot());
      const std::vector<Action> actions = logic.step(world.now_ms);
      if (actions.empty()) break;
      for (const Action& action : actions) {
        if (!std::holds_alternative<PullImage>(action.what)) done.push_back(words(action));
        logic.finish({action.id, world.apply(action)}, world.now_ms);
      }
    }
    EXPECT_EQ(world.violations, std::vector<std::string>{});
    return done;
  }
  std::vector<std::string> settle_after(base::TimeMs duration_ms) {
    world.now_ms += duration_ms;
    return settle();
  }
  core::ContainerObservation seen(const std::string& name) const {
    for (const core::TaskObservation& task : logic.observations()) {
      for (const core::ContainerObservation& container : task.containers) {
        if (container.name == name) return container;
      }
    }
    return {};
  }
  void forget() { logic = AgentLogic(LogicOptions()); }

  LogicWorld world;
  AgentLogic logic{LogicOptions()};

 private:
  std::string words(const Action& action) {
    if (const auto* create = std::get_if<CreateContainer>(&action.what)) {
      return "create " + create->plan.container.definition.name;
    }
    const std::string text = describe(action);
    const auto name = [&](const std::string& runtime_id) {
      const auto found = world.entries.find(runtime_id);
      return found == world.entries.end() ? runtime_id
                                          : found->second.plan.container.definition.name;
    };
    if (const auto* start = std::get_if<StartContainer>(&action.what)) {
      return "start " + name(start->runtime_id);
    }
    if (const auto* stop = std::get_if<StopContainer>(&action.what)) {
      return "stop " + name(stop->runtime_id);
    }
    return text;
  }
};

using Words = std::vector<std::string>;

TEST(AgentLogicOrderTest, StartsInOrderAndStopsInReverse) {
  OrderBench bench;
  core::DesiredTask chain =
      task("t", {after(plain("app"), "proxy", DependencyCondition::kStart),
                 after(plain("proxy"), "db", DependencyCondition::kHealthy), plain("db")});
  chain.containers[2].definition.life.health_check = core::HealthCheck{{"CMD", "true"}};
  bench.logic.desire_all({chain});
  EXPECT_EQ(bench.settle(), (Words{"create app", "create proxy", "create db", "start db"}));
  bench.world.named("db")->state.health = core::HealthStatus::kUnhealthy;
  EXPECT_EQ(bench.settle(), Words{});
  EXPECT_EQ(bench.seen("db").health, core::HealthStatus::kUnhealthy);
  bench.forget();  // the next agent waits likewise
  bench.logic.desire_all({chain});
  EXPECT_EQ(bench.settle(), Words{});
  bench.world.named("db")->state.health = core::HealthStatus::kHealthy;
  EXPECT_EQ(bench.settle(), (Words{"start proxy", "start app"}));
  EXPECT_EQ(bench.seen("db").health, core::HealthStatus::kHealthy);

  chain.stop = true;
  bench.logic.desire_all({chain});
  EXPECT_EQ(bench.settle(), (Words{"stop app", "stop proxy", "stop db"}));
}

TEST(AgentLogicOrderTest, AnInitContainerThatFailsEndsTheTask) {
  OrderBench bench;
  const core::DesiredTask desired =
      task("t", {after(plain("app"), "init", DependencyCondition::kSuccess), plain("init", false),
                 plain("beside", false)});
  bench.logic.desire_all({desired});
  bench.settle();
  bench.world.exit(*bench.world.named("init"), 4);
  bench.settle();
  EXPECT_EQ(bench.seen("app").status, ContainerStatus::kStopped);
  EXPECT_EQ(bench.seen("app").reason,
            "dependsOn: container 'init' can no longer reach SUCCESS: it exited with code 4");
  EXPECT_EQ(bench.seen("beside").status, ContainerStatus::kStopped);
}

TEST(AgentLogicOrderTest, ADependentThatIsNotEssentialEndsTheTaskTooAlsoAfterARestartOfTheAgent) {
  OrderBench bench;
  const core::DesiredTask desired =
      task("t", {plain("main"), after(plain("side", false), "init", DependencyCondition::kComplete),
                 plain("init", false)});
  bench.logic.desire_all({desired});
  bench.settle();
  bench.world.exit(*bench.world.named("init"), 0);
  EXPECT_EQ(bench.settle(), Words{"start side"});

  OrderBench late;
  core::DesiredTask timed = desired;
  timed.containers[2].definition.life.start_timeout_s = 5;
  late.logic.desire_all({timed});
  late.settle();
  EXPECT_EQ(late.settle_after(4'999), Words{});
  late.forget();
  late.logic.desire_all({timed});
  late.settle_after(1);
  for (const char* name : {"main", "side", "init"}) {
    EXPECT_EQ(late.seen(name).status, ContainerStatus::kStopped) << name;
  }
  EXPECT_EQ(
      late.seen("side").reason,
      "dependsOn: container 'init' can no longer reach COMPLETE: its startTimeout of 5 s is over");
}

TEST(AgentLogicOrderTest, LinkedContainersAreMadeFirst) {
  OrderBench bench;
  core::DesiredTask desired = task("t", {plain("web"), plain("data"), plain("db")});
  desired.containers[0].definition.host.links = {"db"};
  desired.containers[2].definition.host.volumes_from = {{"data", false}};
  bench.logic.desire_all({desired});
  const Words done = bench.settle();
  const auto at = [&](const std::string& text) {
    return std::find(done.begin(), done.end(), text) - done.begin();
  };
  EXPECT_EQ(done.size(), 6U);
  EXPECT_LT(at("create data"), at("create db"));
  EXPECT_LT(at("create db"), at("create web"));
  EXPECT_LT(at("start db"), at("start web"));
}

TEST(AgentLogicOrderTest, StartsAgainByItsPolicyOnly) {
  OrderBench bench;
  core::DesiredTask desired = task("t", {sharing("model", "G"), plain("other")});
  desired.containers[0].definition.life.restart = core::RestartPolicy{{7}, 60};
  bench.logic.desire_all({desired});
  bench.settle();
  bench.world.now_ms += 60'000;
  bench.world.exit(*bench.world.named("model"), 1);
  const Words done = bench.settle();
  EXPECT_EQ(done.back(), "start model");
  EXPECT_NE(std::find(done.begin(), done.end(), "probe the MPS daemon of G"), done.end())
      << "the gate is passed again";
  EXPECT_EQ(bench.seen("model").status, ContainerStatus::kRunning);
  EXPECT_EQ(bench.world.named("model")->starts, 2);

  bench.world.now_ms += 59'000;
  bench.world.exit(*bench.world.named("model"), 1);
  bench.settle();
  EXPECT_EQ(bench.seen("model").status, ContainerStatus::kStopped) << "too early is final";
  EXPECT_EQ(bench.seen("other").status, ContainerStatus::kStopped);
  EXPECT_EQ(bench.world.named("model")->starts, 2);
}

TEST(AgentLogicOrderTest, AStopIsNotUndoneByAPolicy) {
  OrderBench bench;
  core::DesiredTask desired = task("t", {plain("model")});
  desired.containers[0].definition.life.restart = core::RestartPolicy{{}, 60};
  bench.logic.desire_all({desired});
  bench.settle();
  bench.world.now_ms += 600'000;
  desired.stop = true;
  bench.logic.desire_all({desired});
  EXPECT_EQ(bench.settle(), Words{"stop model"});
  EXPECT_EQ(bench.seen("model").status, ContainerStatus::kStopped);
}

TEST(AgentLogicOrderTest, PortsAreReported) {
  OrderBench bench;
  core::DesiredTask bridge = task("t", {plain("web")});
  bridge.containers[0].definition.ports = {{80, 0}};
  core::DesiredTask host = task("u", {plain("net")});
  host.network_mode = core::NetworkMode::kHost;
  host.containers[0].definition.ports = {{53, 0, core::Protocol::kUdp}};
  bench.logic.desire_all({bridge, host});
  bench.settle();
  bench.world.named("web")->state.bindings = {{"0.0.0.0", 80, 49153}};
  bench.settle();
  EXPECT_EQ(bench.seen("web").bindings,
            (std::vector<core::NetworkBinding>{{"0.0.0.0", 80, 49153, core::Protocol::kTcp}}));
  EXPECT_EQ(bench.seen("net").bindings,
            (std::vector<core::NetworkBinding>{{"0.0.0.0", 53, 53, core::Protocol::kUdp}}));
}

}  // namespace
}  // namespace cotenant::agent
