#include "agent/start_order.h"

#include <gtest/gtest.h>

#include "logic_world.h"

namespace cotenant::agent {
namespace {

using core::DependencyCondition;
using ports::ContainerPhase;

constexpr base::TimeMs kNow = 1'000'000;

ports::ContainerState created() {
  return {};
}
ports::ContainerState running(core::HealthStatus health = core::HealthStatus::kUnknown,
                              base::TimeMs since_ms = kNow - 1000) {
  ports::ContainerState state;
  state.phase = ContainerPhase::kRunning;
  state.started_at_ms = since_ms;
  state.health = health;
  return state;
}
ports::ContainerState exited(std::optional<int> code) {
  ports::ContainerState state;
  state.phase = ContainerPhase::kStopped;
  state.exit_code = code;
  return state;
}

TEST(StartOrderTest, WhenADependencyPermitsTheStart) {
  const auto healthy = core::HealthStatus::kHealthy;
  const auto unhealthy = core::HealthStatus::kUnhealthy;
  struct Case {
    std::string name;
    DependencyCondition condition;
    std::optional<ports::ContainerState> state;
    bool over;
    bool met;
    std::string impossible;
  };
  const Case cases[] = {
      {"START, not there", DependencyCondition::kStart, std::nullopt, false, false, ""},
      {"START, created", DependencyCondition::kStart, created(), false, false, ""},
      {"START, runs", DependencyCondition::kStart, running(), false, true, ""},
      {"START, has run", DependencyCondition::kStart, exited(3), true, true, ""},
      {"START, did not start", DependencyCondition::kStart, exited(std::nullopt), true, false,
       "dependsOn: container 'b' can no longer reach START: it did not run"},
      {"START, never made", DependencyCondition::kStart, std::nullopt, true, false,
       "dependsOn: container 'b' can no longer reach START: it did not run"},
      {"COMPLETE, runs", DependencyCondition::kComplete, running(), false, false, ""},
      {"COMPLETE, ended", DependencyCondition::kComplete, exited(3), true, true, ""},
      {"COMPLETE, starts again", DependencyCondition::kComplete, exited(3), false, false, ""},
      {"SUCCESS, runs", DependencyCondition::kSuccess, running(), false, false, ""},
      {"SUCCESS, ended well", DependencyCondition::kSuccess, exited(0), true, true, ""},
      {"SUCCESS, ended badly", DependencyCondition::kSuccess, exited(3), true, false,
       "dependsOn: container 'b' can no longer reach SUCCESS: it exited with code 3"},
      {"HEALTHY, checks begin", DependencyCondition::kHealthy, running(), false, false, ""},
      {"HEALTHY, not well", DependencyCondition::kHealthy, running(unhealthy), false, false, ""},
      {"HEALTHY, well", DependencyCondition::kHealthy, running(healthy), false, true, ""},
      {"HEALTHY, ended", DependencyCondition::kHealthy, exited(0), true, false,
       "dependsOn: container 'b' can no longer reach HEALTHY: it exited with code 0"},
      {"HEALTHY, too late", DependencyCondition::kHealthy, running(unhealthy, kNow - 9000), false,
       false,
       "dependsOn: container 'b' can no longer reach HEALTHY: its startTimeout of 9 s is over"},
      {"SUCCESS, too late", DependencyCondition::kSuccess, running(unhealthy, kNow - 9000), false,
       false,
       "dependsOn: container 'b' can no longer reach SUCCESS: its startTimeout of 9 s is over"},
      {"HEALTHY in time stays good", DependencyCondition::kHealthy, running(healthy, kNow - 9000),
       false, true, ""},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    core::DesiredContainer a = plain("a");
    core::DesiredContainer b = plain("b");
    a.definition.life.depends_on = {{"b", test.condition}};
    b.definition.life.start_timeout_s = 9;
    const auto find = [&](const std::string& name) -> DependencyTarget {
      EXPECT_EQ(name, "b");
      return {test.state ? &*test.state : nullptr, test.over};
    };
    const StartVerdict verdict = judge_start(task("t", {a, b}), a, find, kNow);
    EXPECT_EQ(verdict.met, test.met);
    EXPECT_EQ(verdict.impossible, test.impossible);
  }
}

TEST(StartOrderTest, WhoStartsAgain) {
  struct Case {
    std::string name;
    std::optional<core::RestartPolicy> policy;
    std::optional<int> exit_code;
    base::TimeMs ran_ms;
    bool want;
  };
  const core::RestartPolicy minute{{2}, 60};
  const Case cases[] = {
      {"without a policy", std::nullopt, 1, 600'000, false},
      {"after the period", minute, 1, 60'000, true},
      {"code 0 too", minute, 0, 60'000, true},
      {"before the period", minute, 1, 59'999, false},
      {"an ignored code", minute, 2, 600'000, false},
      {"one that never ran", minute, std::nullopt, 600'000, false},
  };
  for (const Case& test : cases) {
    core::ContainerDefinition definition;
    definition.life.restart = test.policy;
    ports::ContainerState state = exited(test.exit_code);
    state.started_at_ms = kNow;
    state.finished_at_ms = kNow + test.ran_ms;
    EXPECT_EQ(restarts(definition, state), test.want) << test.name;
    state.phase = ContainerPhase::kRunning;
    EXPECT_FALSE(restarts(definition, state)) << test.name;
  }
}

TEST(StartOrderTest, LinksAndVolumesOrderToo) {
  core::ContainerDefinition definition;
  definition.host.links = {"db:database", "cache"};
  definition.host.volumes_from = {{"data", true}};
  EXPECT_EQ(creation_order(definition), (std::vector<std::string>{"db", "cache", "data"}));
  EXPECT_TRUE(stops_before(definition, "db"));
  EXPECT_FALSE(stops_before(definition, "database"));
  EXPECT_FALSE(stops_before(definition, "data"));
}

}  // namespace
}  // namespace cotenant::agent
