// A State with a clock and a seeded generator, and the calls that most reducer tests make.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/prng.h"
#include "builders.h"
#include "core/reducer.h"
#include "state_dump.h"

namespace cotenant::core::test {

struct World {
  State state = initial_state(1000);
  base::TimeMs now_ms = 1000;
  base::Prng prng{1};

  // The command must succeed.
  Outcome must(const Command& command) {
    auto got = apply(state, command, Context{now_ms, prng});
    EXPECT_TRUE(got.has_value()) << got.error().message;
    return got ? *std::move(got) : Outcome{};
  }

  // The command must fail, and must leave no trace.
  base::Error refused(const Command& command) {
    const std::string before = dump(state);
    const auto got = apply(state, command, Context{now_ms, prng});
    EXPECT_FALSE(got.has_value());
    EXPECT_EQ(dump(state), before);
    return got ? base::Error{} : got.error();
  }

  void connect(const std::string& id, const std::vector<GpuSetup>& gpus, std::int64_t epoch = 1) {
    must(ConnectInstance{registration(id, gpus), epoch});
  }

  void define(const std::string& family, std::vector<ContainerDefinition> containers) {
    must(RegisterTaskDefinition{definition(family, std::move(containers))});
  }

  static RunTask run_command(const std::string& family, int count = 1) {
    RunTask command;
    command.cluster = "default";
    command.definition.family = family;
    command.count = count;
    return command;
  }

  RunTaskReply run(const RunTask& command) { return std::get<RunTaskReply>(must(command).reply); }

  // Runs one task, which must find its place.
  std::string run_one(const std::string& family) {
    const RunTaskReply reply = run(run_command(family));
    EXPECT_EQ(reply.task_ids.size(), 1U) << reply.failures.at(0).detail;
    return reply.task_ids.at(0);
  }

  Task& task(const std::string& id) { return state.tasks.at(id); }
  Instance& node(const std::string& id) { return state.instances.at(id); }

  // What the agent of the task's own instance reports.
  Outcome observe(const std::string& task_id, std::vector<ContainerObservation> containers) {
    return must(ObserveTasks{task(task_id).instance_id, {{task_id, std::move(containers)}}});
  }
};

inline ContainerObservation running(std::string name) {
  return {std::move(name), ContainerStatus::kRunning, {}, "", "engine-id", "sha256:abc"};
}
inline ContainerObservation exited(std::string name, int exit_code) {
  return {std::move(name), ContainerStatus::kStopped, exit_code, "", "engine-id", "sha256:abc"};
}
// Its process never ran, or nobody knows how it ended.
inline ContainerObservation gone(std::string name, std::string reason = {}) {
  return {std::move(name), ContainerStatus::kStopped, {}, std::move(reason), "", ""};
}

}  // namespace cotenant::core::test
