#include "server/core_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "server_world.h"

namespace cotenant::server::test {
namespace {

using Fault = fakes::MemoryStore::Fault;

class CoreEngineTest : public testing::Test, public EffectSink {
 protected:
  void start(ports::StoreLimits limits = {1024, 4 * 1024 * 1024}) {
    store_ = std::make_unique<fakes::MemoryStore>(limits);
    auto engine = CoreEngine::load(*store_, clock_, 1);
    ASSERT_TRUE(engine) << engine.error().message;
    engine_.emplace(std::move(*engine));
    engine_->set_effect_sink(this);
  }

  // One task of family "f" on instance "i1".
  void start_with_task() {
    start();
    run({register_command("f"), connect_command("i1"), run_command("f")});
    ASSERT_EQ(engine_->state().tasks.size(), 1U);
    task_id_ = engine_->state().tasks.begin()->first;
    events_.clear();
  }

  // All in one batch.
  std::vector<base::Result<core::Reply>> run(std::vector<core::Command> commands) {
    std::vector<base::Result<core::Reply>> replies;
    std::vector<PendingCommand> batch;
    for (core::Command& command : commands) {
      batch.push_back({std::move(command),
                       [&](const base::Result<core::Reply>& reply, const core::State& state) {
                         replies.push_back(reply);
                         note("done", state);
                       }});
    }
    engine_->run(std::move(batch));
    EXPECT_EQ(replies.size(), commands.size());
    return replies;
  }

  void on_effects(const core::State& state, const core::Effects& effects) override {
    EXPECT_FALSE(effects.notify_tasks.empty());
    note("sink", state);
  }

  // Whoever is called sees nothing that is not stored.
  void note(const std::string& who, const core::State& state) {
    events_.push_back(who);
    if (engine_->failed()) return;
    EXPECT_EQ(durable(state), stored(*store_));
  }

  fakes::SettableClock clock_{kStart};
  std::unique_ptr<fakes::MemoryStore> store_;
  std::optional<CoreEngine> engine_;
  std::vector<std::string> events_;
  std::string task_id_;
};

TEST_F(CoreEngineTest, ANewStoreGetsTheInitialState) {
  start();
  EXPECT_EQ(store_->records().count("cluster/default"), 1U);
  ASSERT_EQ(store_->commits().size(), 1U);
  ASSERT_TRUE(CoreEngine::load(*store_, clock_, 2));
  EXPECT_EQ(store_->commits().size(), 1U) << "an old store is not written to when it is loaded";
}

TEST_F(CoreEngineTest, AStoreThatCannotBeReadIsAnError) {
  fakes::MemoryStore store;
  store.put("task/x", "{");
  auto damaged = CoreEngine::load(store, clock_, 1);
  ASSERT_FALSE(damaged);
  EXPECT_NE(damaged.error().message.find("record task/x"), std::string::npos);

  store.set_load_fails(true);
  auto unreadable = CoreEngine::load(store, clock_, 1);
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().code, base::ErrorCode::kIo);
}

TEST_F(CoreEngineTest, AStoreThatTakesNoFirstWriteIsAnError) {
  fakes::MemoryStore store;
  store.set_fault(Fault::kRefused);
  auto engine = CoreEngine::load(store, clock_, 1);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, base::ErrorCode::kUnavailable);
}

TEST_F(CoreEngineTest, SinkAndRepliesComeAfterTheCommitInThisOrder) {
  start();
  const auto replies = run({register_command("f"), connect_command("i1"), run_command("f", 2)});
  ASSERT_TRUE(replies[2]);
  EXPECT_EQ(std::get<core::RunTaskReply>(*replies[2]).task_ids.size(), 2U);
  EXPECT_EQ(events_, (std::vector<std::string>{"sink", "done", "done", "done"}));
  EXPECT_EQ(store_->commits().size(), 2U) << "the initial one, and one for the batch";
}

TEST_F(CoreEngineTest, NothingToStoreIsNoCommit) {
  start();
  const auto replies = run({core::CreateCluster{"default"}, core::Expire{}});
  EXPECT_TRUE(replies[0]);
  EXPECT_TRUE(replies[1]);
  EXPECT_EQ(store_->commits().size(), 1U);
  EXPECT_EQ(events_, (std::vector<std::string>{"done", "done"}));
}

TEST_F(CoreEngineTest, ACommandThatIsRefusedSpoilsNoOther) {
  start();
  const auto replies =
      run({core::CreateCluster{"a"}, run_command("nobody"), core::CreateCluster{"b"}});
  EXPECT_TRUE(replies[0]);
  ASSERT_FALSE(replies[1]);
  EXPECT_EQ(replies[1].error().code, base::ErrorCode::kClient);
  EXPECT_TRUE(replies[2]);
  EXPECT_EQ(engine_->state().clusters.size(), 3U);
}

TEST_F(CoreEngineTest, ARecordThatChangesTwiceInABatchIsWrittenOnce) {
  start_with_task();
  const std::size_t before = store_->commits().size();
  run({core::StopTask{"default", task_id_, "once"}, core::ObserveTasks{"i1", {gone(task_id_)}}});
  const auto commits = store_->commits();
  ASSERT_EQ(commits.size(), before + 1);
  // Beside what placement has learnt of the task.
  const auto writes = std::count_if(
      commits.back().begin(), commits.back().end(),
      [&](const ports::StoreWrite& write) { return write.key == "task/" + task_id_; });
  EXPECT_EQ(writes, 1);
}

TEST_F(CoreEngineTest, ARefusedCommitIsRolledBackAndWritesWaitForTheProbe) {
  start_with_task();
  const std::string before = core::test::dump(engine_->state());
  store_->set_fault(Fault::kRefused);

  for (const auto& reply :
       run({core::CreateCluster{"a"}, core::StopTask{"default", task_id_, ""}, run_command("f")})) {
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, base::ErrorCode::kServer);
    EXPECT_NE(reply.error().message.find("the disk is full"), std::string::npos);
  }
  EXPECT_EQ(events_, (std::vector<std::string>{"done", "done", "done"})) << "no sink";
  EXPECT_EQ(core::test::dump(engine_->state()), before);
  EXPECT_FALSE(engine_->writable());
  EXPECT_FALSE(engine_->failed());

  // Mended, but not yet probed: the store is not even asked.
  engine_->tick();
  store_->set_fault(Fault::kNone);
  const std::size_t commits = store_->commits().size();
  EXPECT_FALSE(run({core::CreateCluster{"a"}})[0]);
  EXPECT_EQ(store_->commits().size(), commits);

  engine_->tick();
  EXPECT_TRUE(engine_->writable());
  EXPECT_TRUE(run({core::CreateCluster{"a"}})[0]);
  EXPECT_EQ(store_->records().count("cluster/a"), 1U);
  ASSERT_TRUE(CoreEngine::load(*store_, clock_, 2)) << "the probe's record does not disturb";
}

TEST_F(CoreEngineTest, AReadOnlyStoreStillSeesAgentsGo) {
  start_with_task();
  store_->set_fault(Fault::kRefused);
  EXPECT_FALSE(run({core::CreateCluster{"a"}})[0]);
  ASSERT_TRUE(engine_->state().instances.at("i1").agent_connected) << "kept across the roll-back";
  EXPECT_TRUE(run({core::DisconnectInstance{"i1", 1}})[0]);
  EXPECT_FALSE(engine_->state().instances.at("i1").agent_connected);
}

TEST_F(CoreEngineTest, ARefusedHelloLeavesTheConnectionThatWasThere) {
  struct Case {
    const char* name;
    std::vector<core::Command> before;
    std::vector<core::Command> refused;
    bool connected;
    std::int64_t epoch;
  };
  auto grown = connect_command("i1", 2);
  grown.registration.agent_version = "newer";  // so that there is something to store
  const core::CreateCluster other{"other"};
  const Case cases[] = {
      {"the older connection is still there", {}, {grown}, true, 1},
      {"it had ended before", {core::DisconnectInstance{"i1", 1}}, {grown}, false, 1},
      {"it ends after the hello", {}, {grown, core::DisconnectInstance{"i1", 1}}, false, 1},
      {"the new one ends too", {}, {grown, core::DisconnectInstance{"i1", 2}}, true, 1},
      {"nothing to store of its own", {}, {connect_command("i1", 2), other}, true, 1},
      {"no hello at all", {}, {other}, true, 1},
      {"a dismissal", {}, {core::DeregisterInstance{"default", "i1", true}}, true, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    start_with_task();
    run(c.before);
    store_->set_fault(fakes::MemoryStore::Fault::kRefused);
    for (const auto& reply : run(c.refused)) EXPECT_FALSE(reply);
    const core::Instance& instance = engine_->state().instances.at("i1");
    EXPECT_EQ(instance.agent_connected, c.connected);
    EXPECT_EQ(instance.connection_epoch, c.epoch);
  }
}

TEST_F(CoreEngineTest, AnUnknownOutcomeIsTheEnd) {
  for (const Fault fault : {Fault::kUnknownStored, Fault::kUnknownNotStored, Fault::kConflict}) {
    SCOPED_TRACE(static_cast<int>(fault));
    start_with_task();
    store_->set_fault(fault);
    const auto first = run({core::CreateCluster{"a"}});
    ASSERT_FALSE(first[0]);
    EXPECT_EQ(first[0].error().code, base::ErrorCode::kServer);
    ASSERT_TRUE(engine_->failed());

    store_->set_fault(Fault::kNone);
    engine_->tick();
    const auto later = run({core::CreateCluster{"b"}, core::DisconnectInstance{"i1", 1}});
    for (const auto& reply : later) {
      ASSERT_FALSE(reply);
      EXPECT_NE(reply.error().message.find("the control plane has stopped"), std::string::npos);
    }
    EXPECT_EQ(store_->records().count("cluster/b"), 0U);
  }
}

TEST_F(CoreEngineTest, AnUnknownOutcomeOfTheProbeIsTheEnd) {
  start();
  store_->set_fault(Fault::kRefused);
  run({core::CreateCluster{"a"}});
  store_->set_fault(Fault::kUnknownNotStored);
  engine_->tick();
  EXPECT_TRUE(engine_->failed());
}

TEST_F(CoreEngineTest, WhatCannotBeReadBackIsTheEnd) {
  start();
  store_->set_fault(Fault::kRefused);
  store_->set_load_fails(true);
  const auto replies = run({core::CreateCluster{"a"}});
  ASSERT_FALSE(replies[0]);
  EXPECT_TRUE(engine_->failed());
}

TEST_F(CoreEngineTest, BatchesAreCutAtTheStoresNumberOfWrites) {
  start({kRecordsPerCommand + 4, 64 * 1024 * 1024});
  std::vector<core::Command> commands;
  for (int i = 0; i < 50; ++i) commands.push_back(core::CreateCluster{"c" + std::to_string(i)});
  for (const auto& reply : run(std::move(commands))) EXPECT_TRUE(reply);
  EXPECT_GT(store_->commits().size(), 5U);
  EXPECT_EQ(engine_->state().clusters.size(), 51U);
  EXPECT_EQ(durable(engine_->state()), stored(*store_));
}

TEST_F(CoreEngineTest, BatchesAreCutAtTheStoresBytes) {
  start({1024, 700 * 1024});
  std::vector<core::Command> commands;
  for (int i = 0; i < 16; ++i) {
    commands.push_back(register_command("f" + std::to_string(i), 100, 60 * 1024));
  }
  for (const auto& reply : run(std::move(commands))) {
    EXPECT_TRUE(reply) << reply.error().message;
  }
  EXPECT_GE(store_->commits().size(), 4U);
  EXPECT_EQ(durable(engine_->state()), stored(*store_));
}

TEST_F(CoreEngineTest, WhatIsRefusedInTheMiddleOfACutBatchLeavesTheRestUndone) {
  start({kRecordsPerCommand + 1, 64 * 1024 * 1024});
  std::vector<PendingCommand> batch;
  int succeeded = 0;
  for (int i = 0; i < 10; ++i) {
    batch.push_back({core::CreateCluster{"c" + std::to_string(i)},
                     [&](const base::Result<core::Reply>& reply, const core::State&) {
                       if (reply && ++succeeded == 3) store_->set_fault(Fault::kRefused);
                     }});
  }
  engine_->run(std::move(batch));
  EXPECT_GE(succeeded, 3);
  EXPECT_LT(succeeded, 10);
  EXPECT_EQ(engine_->state().clusters.size(), 1U + static_cast<std::size_t>(succeeded));
  EXPECT_EQ(durable(engine_->state()), stored(*store_));
}

TEST_F(CoreEngineTest, ExpireMayRemoveMoreThanACommitTakes) {
  start({kRecordsPerCommand + 4, 64 * 1024 * 1024});
  run({register_command("f", 1), connect_command("i1")});
  for (int i = 0; i < 5; ++i) run({run_command("f", 9)});
  std::vector<core::Command> reports;
  for (const auto& [id, task] : engine_->state().tasks) {
    reports.push_back(core::ObserveTasks{"i1", {gone(id)}});
  }
  ASSERT_EQ(reports.size(), 45U);
  run(std::move(reports));
  clock_.advance(base::limits::kStoppedTaskRetentionMs);
  engine_->tick();
  EXPECT_FALSE(engine_->failed());
  EXPECT_TRUE(engine_->state().tasks.empty());
  EXPECT_EQ(durable(engine_->state()), stored(*store_));
}

TEST_F(CoreEngineTest, WhatTheStoreDoesNotTakeIsRefusedAndIsNotTheEnd) {
  start({1024, 50 * 1024});
  const auto replies = run({register_command("f", 100, 60 * 1024)});
  ASSERT_FALSE(replies[0]);
  EXPECT_EQ(replies[0].error().code, base::ErrorCode::kLimitExceeded);
  EXPECT_FALSE(engine_->failed());
  EXPECT_FALSE(engine_->trouble());
  EXPECT_TRUE(engine_->state().families.empty());
  EXPECT_TRUE(run({core::CreateCluster{"a"}})[0]);
  EXPECT_EQ(durable(engine_->state()), stored(*store_));
}

TEST_F(CoreEngineTest, ItsObserverHearsOfWhatIsStoredAndOfWhatWasTakenBack) {
  struct Observer final : StateObserver {
    std::vector<std::string> heard;
    void on_loaded(const core::State& state) override {
      heard.push_back("loaded " + std::to_string(state.clusters.size()));
    }
    void on_stored(const core::State& state, const core::Effects& effects) override {
      heard.push_back("stored " + std::to_string(effects.changed_records.size()) + " of " +
                      std::to_string(state.clusters.size()));
    }
  };
  start();
  Observer observer;
  engine_->set_observer(&observer);
  run({core::CreateCluster{"a"}, core::CreateCluster{"b"}, core::CreateCluster{"a"}});
  run({core::CreateCluster{"a"}});
  store_->set_fault(Fault::kRefused);
  run({core::CreateCluster{"c"}});
  EXPECT_TRUE(engine_->trouble());
  EXPECT_EQ(observer.heard, (std::vector<std::string>{"loaded 1", "stored 2 of 3", "loaded 3"}));
}

TEST_F(CoreEngineTest, TickExpiresOnceAMinute) {
  start_with_task();
  run({core::ObserveTasks{"i1", {gone(task_id_)}}});
  engine_->tick();
  clock_.advance(base::limits::kStoppedTaskRetentionMs - 1);
  engine_->tick();
  EXPECT_EQ(engine_->state().tasks.size(), 1U) << "an hour is not over";
  clock_.advance(1);
  engine_->tick();
  EXPECT_EQ(engine_->state().tasks.size(), 1U) << "it looked a millisecond ago";
  clock_.advance(60 * 1000);
  engine_->tick();
  EXPECT_TRUE(engine_->state().tasks.empty());
  EXPECT_EQ(store_->records().count("task/" + task_id_), 0U);
}

}  // namespace
}  // namespace cotenant::server::test
