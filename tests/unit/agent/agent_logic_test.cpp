#include "agent/agent_logic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "logic_world.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using core::ContainerStatus;

// Carries every action out at once, until the logic wants nothing more.
class Bench {
 public:
  explicit Bench(LogicOptions options = {}) : options_(options), logic(options) {}

  // The errors that the next actions of a kind end with, without any effect.
  std::vector<std::pair<std::string, base::Error>> failures;
  // Actions with this in their description take long: they lie in `held`.
  std::string hold = "nothing";
  std::vector<Action> held;

  void look() { logic.observe(logic.begin_snapshot(), world.snapshot()); }

  // The first step, which makes images available, is over.
  void pull() {
    look();
    for (const Action& action : logic.step(world.now_ms)) {
      logic.finish({action.id, world.apply(action)}, world.now_ms);
    }
  }

  std::vector<std::string> settle() {
    std::vector<std::string> done;
    for (int round = 0; round < 100; ++round) {
      look();
      const std::vector<Action> actions = logic.step(world.now_ms);
      if (actions.empty()) break;
      for (const Action& action : actions) {
        const std::string text = describe(action);
        done.push_back(text);
        if (text.find(hold) == std::string::npos) {
          logic.finish({action.id, outcome(action, text)}, world.now_ms);
        } else {
          held.push_back(action);
        }
      }
    }
    EXPECT_EQ(world.violations, std::vector<std::string>{});
    return done;
  }

  // The same with the clock moving on in between.
  std::vector<std::string> settle_for(base::TimeMs duration_ms) {
    std::vector<std::string> done = settle();
    for (base::TimeMs passed = 0; passed < duration_ms; passed += 500) {
      world.now_ms += 500;
      const std::vector<std::string> more = settle();
      done.insert(done.end(), more.begin(), more.end());
    }
    return done;
  }

  void let_go() {
    hold = "nothing";
    for (const Action& action : std::exchange(held, {})) {
      logic.finish({action.id, world.apply(action)}, world.now_ms);
    }
  }

  void restart() { logic = AgentLogic(options_); }

  core::ContainerObservation seen(const std::string& name) const {
    for (const core::TaskObservation& task : logic.observations()) {
      for (const core::ContainerObservation& container : task.containers) {
        if (container.name == name) return container;
      }
    }
    ADD_FAILURE() << "no observation of " << name;
    return {};
  }
  ContainerStatus status(const std::string& name) const { return seen(name).status; }
  std::string reason(const std::string& name) const { return seen(name).reason; }

 private:
  base::Status outcome(const Action& action, const std::string& text) {
    for (auto at = failures.begin(); at != failures.end(); ++at) {
      if (text.find(at->first) == std::string::npos) continue;
      const base::Error error = at->second;
      failures.erase(at);
      return base::fail(error);
    }
    return world.apply(action);
  }

  LogicOptions options_;

 public:
  LogicWorld world;
  AgentLogic logic;
};

bool contains(const std::vector<std::string>& done, const std::string& part) {
  return std::any_of(done.begin(), done.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

TEST(AgentLogicTest, RunsATaskAndReportsItsExit) {
  Bench bench;
  bench.logic.desire_all({task("t", {plain("web")})});
  bench.settle();
  EXPECT_EQ(bench.status("web"), ContainerStatus::kRunning);
  bench.world.exit(*bench.world.named("web"), 3);
  bench.settle();
  const core::ContainerObservation seen = bench.seen("web");
  EXPECT_EQ(seen.status, ContainerStatus::kStopped);
  EXPECT_EQ(seen.exit_code, 3);
  EXPECT_EQ(seen.reason, "");
  EXPECT_FALSE(seen.runtime_id.empty());
}

TEST(AgentLogicTest, TouchesNothingBeforeTheFullDesiredState) {
  Bench bench;
  bench.logic.desire_all({task("t", {sharing("web", "g")})});
  bench.settle();
  bench.world.daemons.insert("other");
  bench.restart();
  bench.logic.desire_changes({task("u", {plain("new")})}, {});
  EXPECT_TRUE(bench.settle_for(60'000).empty());
  // What runs here is reported all the same, for the hello.
  EXPECT_EQ(bench.status("web"), ContainerStatus::kRunning);
}

TEST(AgentLogicTest, ReportsHowContainersEnd) {
  struct Row {
    const char* name;
    std::string action;  // that fails; empty: none
    std::vector<base::Error> errors;
    std::function<void(Bench&)> after;
    std::string want_reason;
    std::optional<int> want_exit;
  };
  const auto nothing = [](Bench&) {};
  const std::vector<Row> rows = {
      {"create refused",
       "create",
       {{ErrorCode::kClient, "bad mount"}},
       nothing,
       "CannotCreateContainerError: bad mount",
       std::nullopt},
      {"image missing",
       "create",
       {{ErrorCode::kNotFound, "no such image: x"},
        {ErrorCode::kNotFound, "no such image: x"},
        {ErrorCode::kNotFound, "no such image: x"}},
       nothing,
       "CannotPullContainerError: no such image: x",
       std::nullopt},
      {"create never answers",
       "create",
       {{ErrorCode::kTimeout, "a"}, {ErrorCode::kTimeout, "b"}, {ErrorCode::kTimeout, "c"}},
       nothing,
       "DockerTimeoutError: c",
       std::nullopt},
      {"name taken by a stranger",
       "create",
       {{ErrorCode::kConflict, "taken"},
        {ErrorCode::kConflict, "taken"},
        {ErrorCode::kConflict, "taken"}},
       nothing,
       "CannotCreateContainerError: taken",
       std::nullopt},
      {"start refused",
       "start container",
       {{ErrorCode::kClient, "no such program"}},
       nothing,
       "CannotStartContainerError: no such program",
       std::nullopt},
      {"killed for memory",
       "",
       {},
       [](Bench& bench) { bench.world.exit(*bench.world.named("web"), 137, true); },
       "OutOfMemoryError: Container killed due to memory usage",
       137},
      {"removed by somebody",
       "",
       {},
       [](Bench& bench) { bench.world.entries.clear(); },
       "CannotInspectContainerError: the container is gone",
       std::nullopt},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Bench bench;
    for (const base::Error& error : row.errors) bench.failures.emplace_back(row.action, error);
    bench.logic.desire_all({task("t", {plain("web")})});
    bench.settle_for(10'000);
    row.after(bench);
    bench.settle_for(1'000);
    EXPECT_EQ(bench.status("web"), ContainerStatus::kStopped);
    EXPECT_EQ(bench.reason("web"), row.want_reason);
    EXPECT_EQ(bench.seen("web").exit_code, row.want_exit);
  }
}

TEST(AgentLogicTest, AnEngineThatIsAwayIsNoFailure) {
  Bench bench;
  for (int i = 0; i < 5; ++i) {
    bench.failures.emplace_back("create", base::Error{ErrorCode::kUnavailable, "away"});
  }
  bench.logic.desire_all({task("t", {plain("web")})});
  bench.settle_for(120'000);
  EXPECT_EQ(bench.status("web"), ContainerStatus::kRunning);

  Snapshot away;
  bench.logic.observe(bench.logic.begin_snapshot(), away);
  bench.logic.desire_all({});
  EXPECT_TRUE(bench.logic.step(bench.world.now_ms).empty());
  EXPECT_TRUE(contains(bench.settle(), "stop container"));
}

TEST(AgentLogicTest, MissingContainersDependOnWhatTheControlPlaneHasSeen) {
  struct Row {
    const char* name;
    bool started;
    bool stop;
    ContainerStatus want;
    const char* want_reason;
  };
  const Row rows[] = {
      {"new", false, false, ContainerStatus::kRunning, ""},
      {"gone", true, false, ContainerStatus::kStopped,
       "CannotInspectContainerError: the container is gone"},
      {"never made and stopped", false, true, ContainerStatus::kStopped, ""},
      {"gone and stopped", true, true, ContainerStatus::kStopped, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Bench bench;
    core::DesiredTask desired = task("t", {plain("web")});
    desired.containers[0].started = row.started;
    desired.stop = row.stop;
    bench.logic.desire_all({desired});
    bench.settle();
    EXPECT_EQ(bench.status("web"), row.want);
    EXPECT_EQ(bench.reason("web"), row.want_reason);
    EXPECT_EQ(bench.seen("web").exit_code, std::nullopt);
  }
}

TEST(AgentLogicTest, StartsNothingUntilAllIsCreated) {
  Bench bench;
  bench.failures.emplace_back("create container b", base::Error{ErrorCode::kUnavailable, "away"});
  bench.logic.desire_all({task("t", {plain("a"), plain("b")})});
  EXPECT_FALSE(contains(bench.settle(), "start container"));
  EXPECT_TRUE(contains(bench.settle_for(2'000), "start container"));
  EXPECT_EQ(bench.status("a"), ContainerStatus::kRunning);
  EXPECT_EQ(bench.status("b"), ContainerStatus::kRunning);
}

TEST(AgentLogicTest, AnEssentialContainerTakesTheOthersAlong) {
  struct Row {
    const char* name;
    bool essential;
    const char* failing;  // "": it exits after it ran
    ContainerStatus want_other;
  };
  const Row rows[] = {
      {"essential exits", true, "", ContainerStatus::kStopped},
      {"sidecar exits", false, "", ContainerStatus::kRunning},
      {"essential cannot be made", true, "create container a", ContainerStatus::kStopped},
      {"sidecar cannot be made", false, "create container a", ContainerStatus::kRunning},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Bench bench;
    if (*row.failing != '\0') {
      bench.failures.emplace_back(row.failing, base::Error{ErrorCode::kClient, "no"});
    }
    bench.logic.desire_all({task("t", {plain("a", row.essential), plain("b")})});
    bench.settle();
    if (*row.failing == '\0') bench.world.exit(*bench.world.named("a"), 0);
    const std::vector<std::string> done = bench.settle();
    EXPECT_EQ(bench.status("a"), ContainerStatus::kStopped);
    EXPECT_EQ(bench.status("b"), row.want_other);
    // A task half of which cannot be made never runs.
    EXPECT_EQ(bench.world.ever_ran.empty(), row.essential && *row.failing != '\0');
  }
}

TEST(AgentLogicTest, StopUsesTheDefinitionsTimeout) {
  for (const auto& [timeout, want] : std::vector<std::pair<std::optional<std::int64_t>, int>>{
           {std::nullopt, 30}, {0, 0}, {90, 90}}) {
    Bench bench;
    core::DesiredTask desired = task("t", {plain("web")});
    desired.containers[0].definition.stop_timeout_s = timeout;
    bench.logic.desire_all({desired});
    bench.settle();
    desired.stop = true;
    bench.logic.desire_changes({desired}, {});
    EXPECT_TRUE(contains(bench.settle(), fmt::format("within {} s", want)));
    EXPECT_EQ(bench.status("web"), ContainerStatus::kStopped);
    EXPECT_EQ(bench.seen("web").exit_code, 143);
  }
}

TEST(AgentLogicTest, AStoppingTaskIsNotStoppedWhileOneRuns) {
  Bench bench;
  core::DesiredTask desired = task("t", {plain("a"), plain("b")});
  bench.logic.desire_all({desired});
  bench.settle();
  desired.stop = true;
  bench.logic.desire_changes({desired}, {});
  bench.look();
  const std::vector<Action> actions = bench.logic.step(bench.world.now_ms);
  ASSERT_EQ(actions.size(), 2u);
  // One stop ends, the other takes long; looking again does not repeat it.
  bench.logic.finish({actions[0].id, bench.world.apply(actions[0])}, bench.world.now_ms);
  EXPECT_TRUE(bench.settle().empty());
  EXPECT_EQ(bench.status("a"), ContainerStatus::kStopped);
  EXPECT_EQ(bench.status("b"), ContainerStatus::kRunning);
  bench.logic.finish({actions[1].id, bench.world.apply(actions[1])}, bench.world.now_ms);
  bench.settle();
  EXPECT_EQ(bench.status("b"), ContainerStatus::kStopped);
}

TEST(AgentLogicTest, ContainersThatNobodyDesires) {
  LogicOptions options;
  options.cleanup_wait_ms = 60'000;
  Bench bench(options);
  bench.logic.desire_all({task("t", {plain("a"), plain("b", false)})});
  bench.settle();
  bench.world.exit(*bench.world.named("b"), 1);
  bench.settle();
  bench.logic.desire_all({});
  EXPECT_TRUE(contains(bench.settle(), "stop container"));
  bench.settle_for(59'000);
  EXPECT_EQ(bench.world.entries.size(), 2u) << "kept for post-mortem";
  bench.settle_for(3'000);
  EXPECT_TRUE(bench.world.entries.empty());
}

TEST(AgentLogicTest, StrangersAreLeftAlone) {
  Bench bench;
  LogicWorld::Entry stranger;
  stranger.state.id = "s";
  stranger.state.phase = ports::ContainerPhase::kRunning;
  stranger.state.labels = {{kInstanceLabel, "i"}};
  bench.world.entries.emplace("s", stranger);
  bench.logic.desire_all({});
  EXPECT_TRUE(bench.settle_for(7'200'000).empty());
}

TEST(AgentLogicTest, ARestartedAgentTakesOver) {
  Bench bench;
  const std::vector<core::DesiredTask> desired = {task("t", {sharing("web", "g")})};
  bench.logic.desire_all(desired);
  bench.settle();
  bench.restart();
  bench.world.probes_answer = false;  // a container that runs is not gated again
  bench.logic.desire_all(desired);
  EXPECT_TRUE(bench.settle_for(60'000).empty());
  EXPECT_EQ(bench.status("web"), ContainerStatus::kRunning);
}

TEST(AgentLogicTest, AContainerThatWasReportedIsNotStartedAgain) {
  Bench bench;
  core::DesiredTask desired = task("t", {plain("a"), plain("b", false)});
  bench.logic.desire_all({desired});
  bench.pull();
  bench.look();
  for (const Action& action : bench.logic.step(bench.world.now_ms)) bench.world.apply(action);
  bench.restart();
  desired.containers[1].started = true;
  bench.logic.desire_all({desired});
  bench.settle();
  EXPECT_EQ(bench.status("a"), ContainerStatus::kRunning);
  EXPECT_EQ(bench.status("b"), ContainerStatus::kStopped);
  EXPECT_FALSE(bench.world.ever_ran.contains("id-b"));
}

TEST(AgentLogicTest, ALostCreateAnswerMakesNoSecondContainer) {
  Bench bench;
  bench.logic.desire_all({task("t", {plain("web")})});
  bench.pull();
  bench.look();
  for (const Action& action : bench.logic.step(bench.world.now_ms)) bench.world.apply(action);
  EXPECT_TRUE(bench.settle().empty()) << "in flight";
  bench.world.now_ms += 301'000;
  bench.settle_for(2'000);
  EXPECT_EQ(bench.world.entries.size(), 1u);
  EXPECT_EQ(bench.status("web"), ContainerStatus::kRunning);
}

TEST(AgentLogicTest, ASnapshotOlderThanAResultIsNotBelieved) {
  Bench bench;
  bench.logic.desire_all({task("t", {plain("web")})});
  bench.pull();
  bench.look();
  const std::vector<Action> create = bench.logic.step(bench.world.now_ms);
  ASSERT_EQ(create.size(), 1u);
  const std::uint64_t token = bench.logic.begin_snapshot();
  const Snapshot before = bench.world.snapshot();
  bench.logic.finish({create[0].id, bench.world.apply(create[0])}, bench.world.now_ms);
  bench.logic.observe(token, before);
  EXPECT_TRUE(bench.logic.step(bench.world.now_ms).empty()) << "it would create a second one";
}

TEST(AgentLogicTest, TheDaemonsLife) {
  Bench bench;
  bench.logic.desire_all({task("t", {sharing("a", "g")}), task("u", {sharing("b", "g")})});
  const std::vector<std::string> begin = bench.settle();
  // The daemon's start does not wait for the containers.
  ASSERT_GT(begin.size(), 2u);
  EXPECT_NE(std::find(begin.begin(), begin.begin() + 2, "start the MPS daemon of g"),
            begin.begin() + 2);
  EXPECT_EQ(bench.status("a"), ContainerStatus::kRunning);
  bench.world.exit(*bench.world.named("a"), 0);
  EXPECT_FALSE(contains(bench.settle_for(60'000), "stop the MPS"));
  bench.world.exit(*bench.world.named("b"), 0);
  EXPECT_FALSE(contains(bench.settle_for(29'000), "stop the MPS"));
  EXPECT_TRUE(contains(bench.settle_for(2'000), "stop the MPS daemon of g"));
  EXPECT_TRUE(bench.world.daemons.empty());
}

TEST(AgentLogicTest, AnIdleDaemonFoundAtTheStartIsStopped) {
  Bench bench;
  bench.world.daemons = {"g"};
  bench.logic.desire_all({});
  EXPECT_FALSE(contains(bench.settle_for(29'000), "stop"));
  EXPECT_TRUE(contains(bench.settle_for(2'000), "stop the MPS daemon of g"));
}

TEST(AgentLogicTest, AWholeGpuContainerWaitsForTheDaemonToGo) {
  Bench bench;
  bench.logic.desire_all({task("t", {sharing("a", "g")})});
  bench.settle();
  core::DesiredTask stopping = task("t", {sharing("a", "g")});
  stopping.stop = true;
  bench.failures.emplace_back("stop the MPS", base::Error{ErrorCode::kTimeout, "wedged"});
  bench.logic.desire_all({stopping, task("w", {whole("w", {"g"})})});
  EXPECT_FALSE(contains(bench.settle(), "start container"));
  EXPECT_EQ(bench.status("w"), ContainerStatus::kPending);
  bench.settle_for(2'000);  // no 30 s of lingering
  EXPECT_TRUE(bench.world.daemons.empty());
  EXPECT_EQ(bench.status("w"), ContainerStatus::kRunning);
}

TEST(AgentLogicTest, ADaemonThatDiedIsStartedAgain) {
  Bench bench;
  bench.logic.desire_all({task("t", {sharing("a", "g")})});
  bench.settle();
  bench.world.daemons.clear();
  EXPECT_TRUE(contains(bench.settle(), "start the MPS daemon of g"));
}

TEST(AgentLogicTest, TheGateFailsClosed) {
  struct Row {
    const char* name;
    const char* failing;
    ErrorCode code;
    const char* want_reason;
  };
  const Row rows[] = {
      {"refuses", "probe", ErrorCode::kUnavailable,
       "MPS control daemon is not available on this instance"},
      {"wedged", "probe", ErrorCode::kTimeout,
       "MPS control daemon is not responding on this instance"},
      {"cannot be started", "start the MPS", ErrorCode::kIo,
       "MPS control daemon is not available on this instance"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Bench bench;
    for (int i = 0; i < 100; ++i) {
      bench.failures.emplace_back(row.failing, base::Error{row.code, "no"});
    }
    bench.logic.desire_all({task("t", {sharing("web", "g"), plain("side", false)})});
    bench.settle_for(5'000);
    EXPECT_EQ(bench.status("web"), ContainerStatus::kPending) << "2 s and 4 s between attempts";
    bench.settle_for(2'000);
    EXPECT_EQ(bench.status("web"), ContainerStatus::kStopped);
    EXPECT_EQ(bench.reason("web"), row.want_reason);
    EXPECT_EQ(bench.seen("web").exit_code, std::nullopt);
    EXPECT_FALSE(bench.world.ever_ran.contains("id-web"));
    EXPECT_EQ(bench.status("side"), ContainerStatus::kStopped);
    bench.failures.clear();
    bench.settle_for(60'000);
    EXPECT_FALSE(bench.world.ever_ran.contains("id-web")) << "a failed gate stays failed";
  }
}

TEST(AgentLogicTest, AProbeWithoutAnAnswerIsAFailedGateAfterTenSeconds) {
  Bench bench;
  bench.logic.desire_all({task("t", {sharing("web", "g")})});
  bench.hold = "probe";
  bench.settle();
  ASSERT_EQ(bench.held.size(), 1u);
  bench.settle_for(9'000);
  EXPECT_EQ(bench.status("web"), ContainerStatus::kPending);
  bench.settle_for(2'000);
  EXPECT_EQ(bench.reason("web"), "MPS control daemon verification did not complete");
}

TEST(AgentLogicTest, ADaemonIsNotStoppedBelowAContainerThatIsStillBeingStopped) {
  Bench bench;
  bench.logic.desire_all({task("t", {sharing("a", "g")})});
  bench.settle();
  bench.hold = "stop container";
  bench.logic.desire_all({task("w", {whole("w", {"g"})})});
  const std::vector<std::string> done = bench.settle_for(40'000);
  EXPECT_FALSE(contains(done, "stop the MPS"));
  EXPECT_FALSE(contains(done, "start container"));
  bench.let_go();
  bench.settle();
  EXPECT_EQ(bench.status("w"), ContainerStatus::kRunning);
}

TEST(AgentLogicTest, ADaemonIsNotStartedBesideAWholeGpuContainer) {
  Bench bench;
  bench.logic.desire_all({task("w", {whole("w", {"g"})})});
  bench.settle();
  bench.hold = "stop container";
  bench.logic.desire_all({task("t", {sharing("a", "g")})});
  EXPECT_FALSE(contains(bench.settle_for(40'000), "start the MPS"));
  bench.let_go();
  bench.settle();
  EXPECT_EQ(bench.status("a"), ContainerStatus::kRunning);
}

TEST(AgentLogicTest, AStartThatWasGivenUpCannotComeTrueAfterTheReport) {
  Bench bench;
  core::DesiredTask desired = task("t", {plain("web")});
  bench.logic.desire_all({desired});
  bench.hold = "start container";
  bench.settle();
  ASSERT_EQ(bench.held.size(), 1u);
  desired.stop = true;
  bench.logic.desire_all({desired});
  bench.settle();
  EXPECT_EQ(bench.status("web"), ContainerStatus::kPending) << "it may start any moment";
  bench.world.now_ms += 241'000;
  bench.hold = "remove container";
  EXPECT_TRUE(contains(bench.settle_for(2'000), "remove container"));
  EXPECT_EQ(bench.status("web"), ContainerStatus::kPending) << "it is still there";
  bench.held.erase(bench.held.begin());
  bench.let_go();
  bench.settle();
  EXPECT_EQ(bench.status("web"), ContainerStatus::kStopped);
  EXPECT_TRUE(bench.world.entries.empty());
}

TEST(AgentLogicTest, AContainerThatCannotBeRemovedDoesNotHoldItsTask) {
  Bench bench;
  core::DesiredTask desired = task("t", {plain("web"), plain("other")});
  bench.hold = "create container other";
  bench.logic.desire_all({desired});
  bench.settle();
  desired.stop = true;
  for (int i = 0; i < 3; ++i) {
    bench.failures.emplace_back("remove", base::Error{ErrorCode::kClient, "busy"});
  }
  bench.logic.desire_all({desired});
  bench.settle_for(10'000);
  EXPECT_EQ(bench.status("web"), ContainerStatus::kStopped);
}

TEST(AgentLogicTest, ALateResultMakesOlderSnapshotsStale) {
  Bench bench;
  bench.hold = "create";
  bench.logic.desire_all({task("t", {plain("web")})});
  bench.settle();
  ASSERT_EQ(bench.held.size(), 1u);
  const Action create = bench.held[0];
  bench.world.now_ms += 301'000;
  EXPECT_TRUE(bench.logic.step(bench.world.now_ms).empty()) << "given up: look first";
  bench.world.now_ms += 2'000;
  const std::uint64_t token = bench.logic.begin_snapshot();
  const Snapshot before = bench.world.snapshot();
  bench.logic.finish({create.id, bench.world.apply(create)}, bench.world.now_ms);
  bench.logic.observe(token, before);
  EXPECT_TRUE(bench.logic.step(bench.world.now_ms).empty());
  bench.logic.finish({create.id, {}}, bench.world.now_ms);  // and once more
  bench.hold = "nothing";
  bench.settle();
  EXPECT_EQ(bench.status("web"), ContainerStatus::kRunning);
  EXPECT_EQ(bench.world.entries.size(), 1u);
}

TEST(AgentLogicTest, AGateThatRecoversInTimeOpens) {
  Bench bench;
  bench.failures = {{"probe", {ErrorCode::kUnavailable, "no"}},
                    {"probe", {ErrorCode::kTimeout, "no"}}};
  bench.logic.desire_all({task("t", {sharing("web", "g")})});
  bench.settle_for(7'000);
  EXPECT_EQ(bench.status("web"), ContainerStatus::kRunning);
}

}  // namespace
}  // namespace cotenant::agent
