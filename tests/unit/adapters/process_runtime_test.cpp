// Real processes of this machine.
#include "adapters/process_runtime.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "adapters/process_lock.h"
#include "adapters/process_record.h"
#include "unit/adapters/temp_folder.h"

namespace cotenant::adapters {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using ports::ContainerPhase;
using ports::ContainerState;

constexpr std::chrono::seconds kPatience{30};  // reached by a failure only

template <class Probe>
bool process_eventually(const Probe& probe) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!probe()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool process_exists(pid_t pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.at(name_end + 2) != 'Z';
}

class ProcessRuntimeTest : public testing::Test {
 protected:
  void SetUp() override { reopen(); }
  void TearDown() override {
    const auto states = runtime_->list("cotenant.instance", "i");
    ASSERT_TRUE(states);
    for (const ContainerState& state : *states) EXPECT_TRUE(runtime_->stop(state.id, 0));
  }

  // As after the agent was killed: nothing is known but what is in the folder.
  void reopen() {
    auto opened = ProcessRuntime::open(root());
    ASSERT_TRUE(opened) << opened.error().message;
    runtime_ = std::move(*opened);
  }
  std::string root() const { return folder_.path() + "/processes"; }
  std::string file_of(const std::string& id, const std::string& name) const {
    return root() + "/" + id + "/" + name;
  }

  ports::ContainerSpec shell(const std::string& script) {
    ports::ContainerSpec spec;
    spec.name = "c" + std::to_string(++names_);
    spec.image = "any";
    spec.entry_point = {"/bin/sh", "-c"};
    spec.command = {script};
    spec.labels = {{"cotenant.instance", "i"}, {"n", spec.name}};
    return spec;
  }
  std::string create(const ports::ContainerSpec& spec) {
    const auto id = runtime_->create(spec);
    EXPECT_TRUE(id) << id.error().message;
    return id.value_or("");
  }
  std::string run(const ports::ContainerSpec& spec) {
    const std::string id = create(spec);
    const base::Status started = runtime_->start(id);
    EXPECT_TRUE(started) << started.error().message;
    return id;
  }
  ContainerState state_of(const std::string& id) {
    const auto states = runtime_->list("cotenant.instance", "i");
    EXPECT_TRUE(states);
    for (const ContainerState& state : states.value_or(std::vector<ContainerState>())) {
      if (state.id == id) return state;
    }
    ADD_FAILURE() << id << " is not listed";
    return {};
  }
  ContainerState ended(const std::string& id) {
    EXPECT_TRUE(process_eventually([&] { return state_of(id).phase == ContainerPhase::kStopped; }));
    return state_of(id);
  }
  std::string log_of(const std::string& id) { return text_of(file_of(id, "log")); }
  void wait_for_log(const std::string& id, const std::string& text) {
    EXPECT_TRUE(process_eventually([&] { return log_of(id).find(text) != std::string::npos; }))
        << log_of(id);
  }

  TempFolder folder_;
  std::unique_ptr<ProcessRuntime> runtime_;
  int names_ = 0;
};

TEST_F(ProcessRuntimeTest, SaysThatThereIsNoIsolation) {
  const auto info = runtime_->info();
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->has_isolation);
  EXPECT_FALSE(info->has_bridge);
}

TEST_F(ProcessRuntimeTest, LivesThroughCreatedRunningStoppedAndGone) {
  const std::string id = create(shell("read never < /dev/zero"));
  EXPECT_EQ(state_of(id).phase, ContainerPhase::kCreated);
  ASSERT_TRUE(runtime_->start(id));
  const ContainerState running = state_of(id);
  EXPECT_EQ(running.phase, ContainerPhase::kRunning);
  EXPECT_GT(running.started_at_ms, 0);
  EXPECT_TRUE(runtime_->start(id));  // once more: it runs
  const auto refused = runtime_->remove(id);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  ASSERT_TRUE(runtime_->stop(id, 10));
  const ContainerState stopped = ended(id);
  EXPECT_EQ(stopped.exit_code, 128 + SIGTERM);
  EXPECT_GE(stopped.finished_at_ms, running.started_at_ms);
  EXPECT_TRUE(runtime_->stop(id, 10));  // stopped already
  ASSERT_TRUE(runtime_->remove(id));
  EXPECT_TRUE(runtime_->remove(id));  // gone already
  EXPECT_TRUE(runtime_->list("cotenant.instance", "i")->empty());
  EXPECT_TRUE(fs::is_empty(root()));
}

struct EndRow {
  const char* script;
  int want;
};

TEST_F(ProcessRuntimeTest, ExitCodesAreDockers) {
  const EndRow rows[] = {{"exit 0", 0},        {"exit 3", 3},
                         {"exit 255", 255},    {"kill -9 $$", 137},
                         {"kill -11 $$", 139}, {"no-such-program-at-all", 127}};
  for (const EndRow& row : rows) {
    EXPECT_EQ(ended(run(shell(row.script))).exit_code, row.want) << row.script;
  }
}

TEST_F(ProcessRuntimeTest, ListsByLabel) {
  const ports::ContainerSpec spec = shell("exit 0");
  create(spec);
  create(shell("exit 0"));
  const auto found = runtime_->list("n", spec.name);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().name, spec.name);
  EXPECT_EQ(found->front().labels, spec.labels);
  const auto again = runtime_->create(spec);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
}

TEST_F(ProcessRuntimeTest, AStartThatFailsSaysWhyAndIsSeenAsStopped) {
  ports::ContainerSpec missing = shell("");
  missing.entry_point = {"/no/such/program"};
  ports::ContainerSpec nowhere = shell("exit 0");
  nowhere.working_directory = "/no/such/folder";
  const std::pair<ports::ContainerSpec, const char*> rows[] = {
      {missing, "program '/no/such/program'"}, {nowhere, "workingDirectory '/no/such/folder'"}};
  for (const auto& [spec, want] : rows) {
    const std::string id = create(spec);
    const base::Status started = runtime_->start(id);
    ASSERT_FALSE(started) << want;
    EXPECT_EQ(started.error().code, ErrorCode::kClient);
    EXPECT_NE(started.error().message.find(want), std::string::npos) << started.error().message;
    const ContainerState state = state_of(id);
    EXPECT_EQ(state.phase, ContainerPhase::kStopped);
    EXPECT_FALSE(state.exit_code);
    EXPECT_NE(state.error.find(want), std::string::npos) << state.error;
  }
}

TEST_F(ProcessRuntimeTest, TheProgramGetsItsEnvironmentAndFolderAndNothingOfOurs) {
  ::setenv("COTENANT_TEST_SECRET", "of the agent", 1);
  ports::ContainerSpec spec = shell("pwd; env; ls -l /proc/self/fd | wc -l; cat; echo end");
  spec.environment = {{"ONE", "1 2"}, {"COTENANT_CONTAINER", "another's"}};
  spec.working_directory = folder_.path();
  const std::string id = run(spec);
  EXPECT_EQ(ended(id).exit_code, 0);
  const std::string log = log_of(id);
  EXPECT_NE(log.find(" stdout F " + folder_.path() + "\n"), std::string::npos) << log;
  EXPECT_NE(log.find(" stdout F ONE=1 2\n"), std::string::npos) << log;
  EXPECT_NE(log.find(" stdout F COTENANT_CONTAINER=" + id + "\n"), std::string::npos) << log;
  EXPECT_EQ(log.find("another's"), std::string::npos) << log;
  EXPECT_EQ(log.find("COTENANT_TEST_SECRET"), std::string::npos) << log;
  // "total", three streams, and the folder itself that ls reads.
  EXPECT_NE(log.find(" stdout F 5\n"), std::string::npos) << log;
  EXPECT_NE(log.find(" stdout F end\n"), std::string::npos) << "its input has an end: " << log;
}

TEST_F(ProcessRuntimeTest, ItsOutputIsKeptInFilesOfABoundedSize) {
  ports::ContainerSpec spec = shell(
      "i=0; while [ $i -lt 200 ]; do echo line-$i; i=$((i+1)); done; echo err >&2; printf end");
  spec.host.log = core::LogSettings{"json-file", {{"max-size", "2k"}, {"max-file", "3"}}};
  const std::string id = run(spec);
  ended(id);
  std::string all;
  for (const char* name : {"log.2", "log.1", "log"}) {
    EXPECT_LE(fs::file_size(file_of(id, name)), 2048U) << name;
    all += text_of(file_of(id, name));
  }
  EXPECT_FALSE(fs::exists(file_of(id, "log.3")));
  EXPECT_NE(all.find(" stdout F line-199\n"), std::string::npos);
  EXPECT_NE(all.find(" stderr F err\n"), std::string::npos);
  EXPECT_NE(all.find(" stdout P end\n"), std::string::npos);
  EXPECT_EQ(all.find(" line-1\n"), std::string::npos) << "the oldest are gone";
}

TEST_F(ProcessRuntimeTest, LongLinesArePieces) {
  const std::string id = run(shell("head -c 40000 /dev/zero | tr '\\0' x; echo"));
  ended(id);
  const std::string log = log_of(id);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3);
  EXPECT_EQ(std::count(log.begin(), log.end(), 'x'), 40000);
}

TEST_F(ProcessRuntimeTest, StopLetsTheGroupEndByItselfAndThenKillsAll) {
  const std::string gentle =
      run(shell("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done"));
  wait_for_log(gentle, "up");
  ASSERT_TRUE(runtime_->stop(gentle, 20));
  EXPECT_EQ(ended(gentle).exit_code, 7);
  EXPECT_NE(log_of(gentle).find("bye"), std::string::npos);

  // One that does not listen, and a descendant that has left its group and its parent.
  const std::string deaf = run(shell(
      "trap '' TERM; setsid sh -c 'echo far $$; exec sleep 1000' & while :; do sleep 0.05; done"));
  wait_for_log(deaf, "far ");
  const std::string log = log_of(deaf);
  const pid_t far = std::stoi(log.substr(log.find("far ") + 4));
  ASSERT_TRUE(runtime_->stop(deaf, 0));
  EXPECT_EQ(ended(deaf).exit_code, 137);
  EXPECT_FALSE(process_exists(far));
}

TEST_F(ProcessRuntimeTest, WhatTheProgramLeavesBehindEndsWithIt) {
  const std::string id = run(shell("setsid sleep 1000 & echo left $!; exit 0"));
  EXPECT_EQ(ended(id).exit_code, 0);
  const std::string log = log_of(id);
  EXPECT_FALSE(process_exists(std::stoi(log.substr(log.find("left ") + 5))));
}

TEST_F(ProcessRuntimeTest, ANewAgentFindsWhatRunsAndHowTheRestEnded) {
  const std::string runs = run(shell("echo up; exec sleep 1000"));
  const std::string ends = run(shell("exit 5"));
  const std::string fresh = create(shell("exit 0"));
  ended(ends);
  reopen();
  EXPECT_EQ(state_of(runs).phase, ContainerPhase::kRunning);
  EXPECT_EQ(state_of(ends).exit_code, 5);
  EXPECT_EQ(state_of(fresh).phase, ContainerPhase::kCreated);
  ASSERT_TRUE(runtime_->stop(runs, 10));
  EXPECT_EQ(ended(runs).exit_code, 143);
}

TEST_F(ProcessRuntimeTest, AStoppedOneIsStartedAgain) {
  const std::string marker = folder_.path() + "/again";
  const std::string id =
      run(shell("test -e " + marker + " && exec sleep 1000; touch " + marker + "; exit 4"));
  EXPECT_EQ(ended(id).exit_code, 4);
  ASSERT_TRUE(runtime_->start(id));
  EXPECT_EQ(state_of(id).phase, ContainerPhase::kRunning);
  ASSERT_TRUE(runtime_->stop(id, 10));
  EXPECT_EQ(ended(id).exit_code, 143);
}

TEST_F(ProcessRuntimeTest, WhatHasEndedCanBeStartedAndRemovedAtOnce) {
  // Between the shim's last word and its end its lock is still held.
  for (int i = 0; i < 20; ++i) {
    const std::string id = run(shell("exit 4"));
    ended(id);
    ASSERT_TRUE(runtime_->start(id));
    EXPECT_EQ(ended(id).exit_code, 4);
    ASSERT_TRUE(runtime_->remove(id));
  }
}

TEST_F(ProcessRuntimeTest, AKilledShimTakesItsProcessesWithIt) {
  const std::string id =
      run(shell("setsid sh -c 'echo far $$; exec sleep 1000' & while :; do sleep 0.05; done"));
  wait_for_log(id, "far ");
  const std::string log = log_of(id);
  const pid_t far = std::stoi(log.substr(log.find("far ") + 4));
  const auto record = read_process_state(root() + "/" + id);
  ASSERT_TRUE(record);
  ASSERT_EQ(::kill(record->shim, SIGKILL), 0);
  EXPECT_EQ(ended(id).exit_code, 137);
  EXPECT_TRUE(
      process_eventually([&] { return !process_exists(far) && !process_exists(record->pid); }));
}

TEST_F(ProcessRuntimeTest, WhatRanWhenTheMachineWentDownHasEnded) {
  const std::string id = create(shell("exit 0"));
  std::ofstream(file_of(id, "state")) << "shim 1\npid 1\nboot of-another-boot\nstarted_ms 5\n";
  const ContainerState state = state_of(id);
  EXPECT_EQ(state.phase, ContainerPhase::kStopped);
  EXPECT_EQ(state.exit_code, 255);
  EXPECT_TRUE(process_exists(1));
}

TEST_F(ProcessRuntimeTest, ARecordOfTheRunBeforeSignalsNobodyElse) {
  const std::string other = run(shell("exec sleep 1000"));
  const std::string id = create(shell("exit 0"));
  const std::string folder = root() + "/" + id;
  {
    // It is being started again, and the pid of its last shim is another process's by now.
    const auto lock = take_process_lock(folder);
    ASSERT_TRUE(lock);
    fs::copy_file(file_of(other, "state"), file_of(id, "state"));
    for (const base::Status& status : {runtime_->stop(id, 0), runtime_->start(id)}) {
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, ErrorCode::kTimeout);
    }
  }
  EXPECT_EQ(state_of(other).phase, ContainerPhase::kRunning);
}

TEST_F(ProcessRuntimeTest, WhatCouldNotBeReadAgainIsNotCreated) {
  ports::ContainerSpec spec = shell("exit 0");
  spec.environment = {{"LARGE", std::string(std::size_t{1024} * 1024, 'x')}};
  const auto refused = runtime_->create(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kClient);
  EXPECT_TRUE(fs::is_empty(root()));
}

TEST_F(ProcessRuntimeTest, DamagedFoldersHideNothingElse) {
  const std::string good = create(shell("exit 0"));
  const std::string bad = create(shell("exit 0"));
  reopen();
  std::ofstream(file_of(bad, "config.json")) << "{";
  fs::create_directory(root() + "/.new-" + std::string(64, 'a'));
  fs::create_directory(root() + "/somebody's");
  const auto states = runtime_->list("cotenant.instance", "i");
  ASSERT_TRUE(states);
  ASSERT_EQ(states->size(), 1U);
  EXPECT_EQ(states->front().id, good);
  reopen();
  EXPECT_FALSE(fs::exists(root() + "/.new-" + std::string(64, 'a')));
  EXPECT_TRUE(fs::exists(root() + "/somebody's"));
}

TEST_F(ProcessRuntimeTest, NoSuchContainer) {
  const std::string id(64, 'f');
  for (const std::string& name : {id, std::string("../etc"), std::string()}) {
    EXPECT_EQ(runtime_->start(name).error().code, ErrorCode::kNotFound) << name;
    EXPECT_EQ(runtime_->stop(name, 1).error().code, ErrorCode::kNotFound) << name;
    EXPECT_TRUE(runtime_->remove(name)) << name;
  }
  EXPECT_EQ(runtime_->stop(create(shell("exit 0")), -1).error().code, ErrorCode::kClient);
}

TEST_F(ProcessRuntimeTest, WatchTellsOfStartsAndEnds) {
  std::atomic<int> changes{0};
  base::Status outcome;
  std::jthread watcher([&](std::stop_token stop) {
    outcome = runtime_->watch(
        "", "", [&] { ++changes; }, stop);
  });
  // Until the watch is there, an event may be missed: make one after the other.
  ASSERT_TRUE(process_eventually([&] {
    create(shell("exit 0"));
    return changes > 0;
  }));
  const std::string id = create(shell("exec sleep 1000"));
  int before = changes;
  ASSERT_TRUE(runtime_->start(id));
  EXPECT_TRUE(process_eventually([&] { return changes > before; }));
  before = changes;
  const auto record = read_process_state(root() + "/" + id);
  ASSERT_TRUE(record);
  ::kill(record->pid, SIGKILL);
  EXPECT_TRUE(process_eventually(
      [&] { return changes > before && state_of(id).phase == ContainerPhase::kStopped; }));
  watcher.request_stop();
  watcher.join();
  EXPECT_TRUE(outcome);
}

TEST_F(ProcessRuntimeTest, ManyAtOnce) {
  std::vector<std::string> ids;
  for (int i = 0; i < 16; ++i) ids.push_back(create(shell("echo hello; exec sleep 1000")));
  {
    std::vector<std::jthread> threads;
    for (const std::string& id : ids)
      threads.emplace_back([&, id] { EXPECT_TRUE(runtime_->start(id)); });
  }
  for (const std::string& id : ids) EXPECT_EQ(state_of(id).phase, ContainerPhase::kRunning);
  {
    std::vector<std::jthread> threads;
    for (const std::string& id : ids)
      threads.emplace_back([&, id] { EXPECT_TRUE(runtime_->stop(id, 10)); });
  }
  for (const std::string& id : ids) EXPECT_EQ(state_of(id).exit_code, 143);
}

}  // namespace
}  // namespace cotenant::adapters
