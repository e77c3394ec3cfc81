// Random commands over a small cluster: several instances, GPUs of every kind, task definitions of
// every kind, agents that report late, twice, wrongly or not at all. The same seed gives the same
// history.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/prng.h"
#include "builders.h"
#include "core/reducer.h"

namespace cotenant::core::test {

class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed) : dice_(seed), prng_(seed + 1) {
    setups_ = {
        {"i1", {idle_gpu(), idle_gpu()}},
        {"i2", {{80000, 4}, unreadable_gpu(), {24000, 8}}},
        {"i3", {}},
    };
    step(CreateCluster{"other"});
    for (const Setup& setup : setups_) step(ConnectInstance{registration(setup.id, setup.gpus), 1});
    step(ConnectInstance{registration("x1", {idle_gpu()}, "other"), 1});
    for (const TaskDefinition& each : definitions()) step(RegisterTaskDefinition{each});
  }

  const State& state() const { return state_; }

  // The next command; step() applies it.
  Command next() {
    now_ms_ += roll(20000);
    const int dice = roll(100);
    if (dice < 34) return run_task();
    if (dice < 80) return observe();
    if (dice < 88) return stop_task();
    if (dice < 92) return connect();
    if (dice < 95) return DisconnectInstance{any_instance(), roll(4)};
    if (dice < 98) {
      if (one_in(4)) now_ms_ += roll(12 * 3600 * 1000);
      return Expire{};
    }
    if (dice < 99) return rare();
    return RegisterTaskDefinition{definitions()[static_cast<std::size_t>(roll(3))]};
  }

  base::Result<Outcome> step(const Command& command) {
    return apply(state_, command, Context{now_ms_, prng_});
  }

  // Every agent reports every container gone.
  void report_all_gone() {
    std::vector<ObserveTasks> reports;
    for (const auto& [id, task] : state_.tasks) {
      TaskObservation seen{id, {}};
      for (const TaskContainer& part : task.containers) {
        seen.containers.push_back({part.name, ContainerStatus::kStopped, 0, "", "", ""});
      }
      reports.push_back({task.instance_id, {std::move(seen)}});
    }
    for (const ObserveTasks& report : reports) step(report);
  }

 private:
  struct Setup {
    std::string id;
    std::vector<GpuSetup> gpus;
  };

  static std::vector<TaskDefinition> definitions() {
    return {
        definition("half", {container("main", SharedGpu{kGpuMib / 2, {}})}),
        definition("small", {container("main", SharedGpu{5000, 10})}),
        definition("pair",
                   {container("a", SharedGpu{7000, {}}), container("b", SharedGpu{9000, 90}),
                    container("side", NoGpu{}, false)}),
        definition("whole", {container("main", WholeGpus{1, false})}),
        definition("two",
                   {container("a", WholeGpus{1, false}), container("b", WholeGpus{1, false})}),
        definition("all",
                   {container("main", WholeGpus{0, true}), container("side", NoGpu{}, false)}),
        definition("cpu", {container("main"), container("side", NoGpu{}, false)}),
        definition("huge", {container("main", SharedGpu{kGpuMib + 1, {}})}),
    };
  }

  int roll(int sides) { return static_cast<int>(dice_.next() % static_cast<std::uint64_t>(sides)); }
  bool one_in(int sides) { return roll(sides) == 0; }

  template <class T>
  const T& any(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(roll(static_cast<int>(list.size())))];
  }

  // Calls that end or change what the others rest on.
  Command rare() {
    const std::string cluster = one_in(2) ? "other" : "default";
    const base::TaskDefinitionRef revision{any(std::vector<std::string>{"half", "small", "nope"}),
                                           1 + roll(3)};
    switch (roll(9)) {
      case 0:
        return DeleteCluster{"other"};
      case 1:
        return DeregisterTaskDefinition{revision};
      case 2:
        return DeleteTaskDefinitions{{revision, {"cpu", 1}}};
      case 3:
        return UpdateInstancesState{
            cluster,
            {any_instance(), any_instance()},
            one_in(2) ? InstanceStatus::kActive : InstanceStatus::kDraining};
      case 4:
        return DeregisterInstance{cluster, any_instance(), one_in(2)};
      case 5:
        return TagResource{{RecordKind::kTask, any_task()}, "default", {{"k", "v"}}, {"gone"}};
      case 6:
        return TagResource{
            {RecordKind::kTaskDefinition, "half", 1 + roll(2)}, "", {{"a", "1"}}, {}};
      case 7: {
        StartTask start;
        start.launch = std::get<RunTask>(run_task());
        start.instance_ids = {any_instance(), any_instance()};
        return start;
      }
      default:
        return CreateCluster{cluster, {{"made", "again"}}};
    }
  }

  std::string any_instance() {
    return any(std::vector<std::string>{"i1", "i2", "i3", "x1", "nope"});
  }

  // One that exists, mostly.
  std::string any_task() {
    if (state_.tasks.empty() || one_in(20)) return "0123456789abcdef0123456789abcdef";
    auto at = state_.tasks.begin();
    std::advance(at, roll(static_cast<int>(state_.tasks.size())));
    return at->first;
  }

  Command run_task() {
    RunTask command;
    command.cluster = one_in(30) ? "nope" : one_in(6) ? "other" : "default";
    command.definition.family = any(
        std::vector<std::string>{"half", "half", "small", "small", "small", "pair", "pair", "whole",
                                 "two", "all", "cpu", "huge", "half", "small", "whole", "unknown"});
    if (one_in(10)) command.definition.revision = 1 + roll(3);
    command.count = 1 + roll(3);
    if (one_in(20)) command.overrides = {{one_in(2) ? "main" : "nope", {}, {}}};
    if (one_in(10)) {
      ContainerOverride entry;
      entry.name = "main";
      entry.cpu_units = 100 + roll(1000);
      entry.memory_mib = 100 + roll(1000);
      if (one_in(2)) entry.gpu = SharedGpu{1000 + roll(9000), {}};
      if (one_in(4)) entry.gpu = WholeGpus{1, false};
      command.overrides = {std::move(entry)};
    }
    if (one_in(5)) {
      command.client_token = "token" + std::to_string(roll(20));
      command.parameters_digest = std::to_string(roll(2));
    }
    return command;
  }

  Command stop_task() {
    const std::string id = any_task();
    const auto found = state_.tasks.find(id);
    const bool wrong = found == state_.tasks.end() || one_in(10);
    return StopTask{wrong ? "default" : found->second.cluster, id, one_in(2) ? "by hand" : ""};
  }

  Command connect() {
    const Setup& setup = any(setups_);
    ConnectInstance command{registration(setup.id, setup.gpus, one_in(10) ? "other" : "default"),
                            roll(4)};
    if (one_in(3)) command.registration.agent_version = std::to_string(roll(3));
    if (one_in(4) && !command.registration.gpus.empty()) {
      command.registration.gpus.push_back({"GPU-" + setup.id + "-new", "A10G", 22000, 8});
    }
    return command;
  }

  Command observe() {
    ObserveTasks command;
    const int tasks = 1 + roll(2);
    for (int i = 0; i < tasks; ++i) {
      const std::string id = any_task();
      const auto found = state_.tasks.find(id);
      TaskObservation seen{id, {}};
      if (found != state_.tasks.end()) {
        command.instance_id = one_in(20) ? any_instance() : found->second.instance_id;
        for (const TaskContainer& part : found->second.containers) {
          if (one_in(4)) continue;
          seen.containers.push_back(container_report(part.name));
        }
      }
      if (one_in(10)) seen.containers.push_back(container_report("nope"));
      command.tasks.push_back(std::move(seen));
    }
    return command;
  }

  ContainerObservation container_report(const std::string& name) {
    ContainerObservation seen;
    seen.name = name;
    seen.status = any(std::vector<ContainerStatus>{
        ContainerStatus::kPending, ContainerStatus::kRunning, ContainerStatus::kRunning,
        ContainerStatus::kStopped, ContainerStatus::kStopped});
    if (seen.status == ContainerStatus::kStopped && !one_in(3)) seen.exit_code = roll(3);
    if (one_in(3)) seen.reason = "reason " + std::to_string(roll(3));
    if (one_in(2)) seen.runtime_id = "engine-" + std::to_string(roll(3));
    return seen;
  }

  std::vector<Setup> setups_;
  base::Prng dice_;
  base::Prng prng_;  // the core's own
  base::TimeMs now_ms_ = 1000;
  State state_ = initial_state(1000);
};

}  // namespace cotenant::core::test
