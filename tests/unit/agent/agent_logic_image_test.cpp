// What the agent's logic does about images.
#include <gtest/gtest.h>

#include <algorithm>

#include "agent/agent_logic.h"
#include "logic_world.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using core::ContainerStatus;

core::DesiredContainer from_image(const std::string& name, const std::string& image) {
  core::DesiredContainer container = plain(name);
  container.definition.image = image;
  return container;
}

// Pulls take until they are answered; everything else happens at once.
class ImageBench {
 public:
  void settle() {
    for (int round = 0; round < 100; ++round) {
      logic.observe(logic.begin_snapshot(), world.snapshot());
      const std::vector<Action> actions = logic.step(world.now_ms);
      if (actions.empty()) break;
      for (const Action& action : actions) {
        EXPECT_GT(action.start_by_ms, world.now_ms);
        if (const auto* pull = std::get_if<PullImage>(&action.what)) {
          ++pulls[pull->image];
          in_flight.push_back(action);
        } else {
          logic.finish({action.id, world.apply(action)}, world.now_ms);
        }
      }
    }
    EXPECT_EQ(world.violations, std::vector<std::string>{});
  }
  void settle_for(base::TimeMs duration_ms) {
    for (base::TimeMs passed = 0; passed < duration_ms; passed += 500) {
      world.now_ms += 500;
      settle();
    }
  }
  // Ends the pull of the image that is in flight.
  void answer(const std::string& image, const base::Status& status = {}) {
    const auto found = std::find_if(in_flight.begin(), in_flight.end(), [&](const Action& action) {
      return std::get<PullImage>(action.what).image == image;
    });
    ASSERT_NE(found, in_flight.end()) << image;
    const Action action = *found;
    in_flight.erase(found);
    if (status) (void)world.apply(action);
    logic.finish({action.id, status}, world.now_ms);
    settle();
  }
  core::TaskObservation seen(const std::string& task_id) const {
    for (const core::TaskObservation& observed : logic.observations()) {
      if (observed.task_id == task_id) return observed;
    }
    ADD_FAILURE() << task_id;
    return {};
  }
  ContainerStatus status(const std::string& task_id) const {
    return seen(task_id).containers.at(0).status;
  }
  std::string reason(const std::string& task_id) const {
    return seen(task_id).containers.at(0).reason;
  }

  LogicWorld world;
  AgentLogic logic{LogicOptions{}};
  std::map<std::string, int> pulls;
  std::vector<Action> in_flight;
};

TEST(AgentLogicImageTest, OnePullServesAllWhoWait) {
  ImageBench bench;
  bench.logic.desire_all({task("t", {from_image("a", "x")}), task("u", {from_image("b", "x")})});
  bench.settle();
  EXPECT_EQ(bench.pulls["x"], 1);
  bench.logic.note_pull_began("x", bench.world.now_ms);
  const base::TimeMs began_ms = bench.world.now_ms;
  // One that comes meanwhile has part in it.
  bench.settle_for(60'000);
  bench.logic.desire_changes({task("v", {from_image("c", "x")})}, {});
  bench.settle();
  const base::TimeMs joined_ms = bench.world.now_ms;
  EXPECT_EQ(bench.status("v"), ContainerStatus::kPending);
  bench.settle_for(60'000);
  EXPECT_TRUE(bench.world.entries.empty()) << "created before its image was there";
  bench.answer("x");
  for (const char* id : {"t", "u", "v"}) {
    EXPECT_EQ(bench.status(id), ContainerStatus::kRunning) << id;
    EXPECT_EQ(bench.seen(id).pull_stopped_at_ms, bench.world.now_ms);
  }
  EXPECT_EQ(bench.seen("t").pull_started_at_ms, began_ms);
  EXPECT_EQ(bench.seen("v").pull_started_at_ms, joined_ms);
  EXPECT_EQ(bench.pulls["x"], 1);
  // A later task asks again: whether that needs a registry is the policy's business.
  bench.logic.desire_changes({task("w", {from_image("d", "x")})}, {});
  bench.settle();
  EXPECT_EQ(bench.pulls["x"], 2);
  bench.answer("x");
  EXPECT_EQ(bench.status("w"), ContainerStatus::kRunning);
  EXPECT_EQ(bench.seen("w").pull_started_at_ms, 0) << "no registry was asked";
  EXPECT_EQ(bench.seen("w").pull_stopped_at_ms, 0);
}

TEST(AgentLogicImageTest, ATasksPullsSpanFromTheFirstToTheLast) {
  ImageBench bench;
  bench.logic.desire_all({task("t", {from_image("a", "x"), from_image("b", "y")})});
  bench.settle();
  const base::TimeMs began_ms = bench.world.now_ms;
  bench.logic.note_pull_began("x", began_ms);
  bench.settle_for(5'000);
  bench.logic.note_pull_began("y", bench.world.now_ms);
  bench.answer("x");
  EXPECT_EQ(bench.seen("t").pull_stopped_at_ms, 0);
  bench.settle_for(5'000);
  bench.answer("y");
  EXPECT_EQ(bench.seen("t").pull_started_at_ms, began_ms);
  EXPECT_EQ(bench.seen("t").pull_stopped_at_ms, began_ms + 10'000);
}

TEST(AgentLogicImageTest, FailuresAreTriedAgainAsFarAsItMakesSense) {
  struct Row {
    const char* name;
    base::Error error;
    int want_pulls;  // 0: for ever
    std::string want_reason;
  };
  const Row rows[] = {
      {"absent",
       {ErrorCode::kNotFound, "pull x: manifest unknown"},
       1,
       "CannotPullContainerError: pull x: manifest unknown"},
      {"refused",
       {ErrorCode::kClient, "pull x: unauthorized"},
       1,
       "CannotPullContainerError: pull x: unauthorized"},
      {"registry away",
       {ErrorCode::kIo, "pull x: connection refused"},
       5,
       "CannotPullContainerError: tried 5 times: pull x: connection refused"},
      {"silent",
       {ErrorCode::kTimeout, "pull x: silence"},
       5,
       "CannotPullContainerError: tried 5 times: pull x: silence"},
      {"engine away", {ErrorCode::kUnavailable, "no engine"}, 0, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    ImageBench bench;
    bench.logic.desire_all({task("t", {from_image("a", "x")})});
    bench.settle();
    const int most = row.want_pulls == 0 ? 20 : row.want_pulls;
    for (int pull = 1; pull <= most; ++pull) {
      EXPECT_EQ(bench.pulls["x"], pull);
      bench.answer("x", base::fail(row.error));
      EXPECT_EQ(bench.pulls["x"], pull) << "tried again without a pause";
      bench.settle_for(61'000);
    }
    if (row.want_pulls == 0) {
      EXPECT_EQ(bench.status("t"), ContainerStatus::kPending);
      bench.answer("x");
      EXPECT_EQ(bench.status("t"), ContainerStatus::kRunning);
    } else {
      EXPECT_EQ(bench.status("t"), ContainerStatus::kStopped);
      EXPECT_EQ(bench.reason("t"), row.want_reason);
      EXPECT_TRUE(bench.in_flight.empty());
    }
  }
}

TEST(AgentLogicImageTest, AFewAtATime) {
  ImageBench bench;
  std::vector<core::DesiredTask> tasks;
  for (int i = 0; i < 10; ++i) {
    tasks.push_back(
        task(fmt::format("t{}", i), {from_image(fmt::format("c{}", i), fmt::format("x{}", i))}));
  }
  bench.logic.desire_all(tasks);
  bench.settle();
  EXPECT_EQ(bench.in_flight.size(), 4u);
  while (!bench.in_flight.empty()) {
    EXPECT_LE(bench.in_flight.size(), 4u);
    bench.answer(std::get<PullImage>(bench.in_flight.front().what).image);
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(bench.status(fmt::format("t{}", i)), ContainerStatus::kRunning);
  }
}

TEST(AgentLogicImageTest, AStoppedTaskWaitsForNoPull) {
  ImageBench bench;
  core::DesiredTask desired = task("t", {from_image("a", "x")});
  bench.logic.desire_all({desired});
  bench.settle();
  desired.stop = true;
  bench.logic.desire_changes({desired}, {});
  bench.settle();
  EXPECT_EQ(bench.status("t"), ContainerStatus::kStopped);
  bench.answer("x");
  EXPECT_TRUE(bench.world.entries.empty());
  EXPECT_EQ(bench.reason("t"), "");
}

TEST(AgentLogicImageTest, TheDaemonStartsDuringThePullAndTheGateDoesNotCountIt) {
  ImageBench bench;
  core::DesiredContainer container = sharing("a", "g");
  container.definition.image = "x";
  bench.logic.desire_all({task("t", {container})});
  bench.settle();
  EXPECT_TRUE(bench.world.daemons.contains("g"));
  bench.settle_for(600'000);
  EXPECT_TRUE(bench.world.daemons.contains("g")) << "it is waited for";
  bench.answer("x");
  bench.settle_for(1'000);
  EXPECT_EQ(bench.status("t"), ContainerStatus::kRunning);
}

TEST(AgentLogicImageTest, AnImageThatWentMeanwhileIsPulledAgain) {
  ImageBench bench;
  bench.logic.desire_all({task("t", {from_image("a", "x")})});
  bench.settle();
  const Action pull = bench.in_flight.front();
  bench.in_flight.clear();
  bench.logic.finish({pull.id, {}}, bench.world.now_ms);  // and the image is removed at once
  bench.settle();
  EXPECT_EQ(bench.pulls["x"], 2);
  bench.answer("x");
  bench.settle_for(2'000);
  EXPECT_EQ(bench.status("t"), ContainerStatus::kRunning);
}

TEST(AgentLogicImageTest, ARestartedAgentPullsNothingForWhatExists) {
  ImageBench bench;
  const std::vector<core::DesiredTask> tasks = {task("t", {from_image("a", "x")})};
  bench.logic.desire_all(tasks);
  bench.settle();
  bench.answer("x");
  bench.logic = AgentLogic(LogicOptions{});
  bench.logic.desire_all(tasks);
  bench.settle_for(60'000);
  EXPECT_EQ(bench.pulls["x"], 1);
  EXPECT_EQ(bench.status("t"), ContainerStatus::kRunning);
  EXPECT_EQ(bench.logic.wanted_images(), std::set<std::string>{"x"});
}

}  // namespace
}  // namespace cotenant::agent
