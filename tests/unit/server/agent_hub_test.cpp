#include "server/agent_hub.h"
#include "server/core_loop.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codec/agent_message.h"
#include "fakes/fake_web_socket.h"
#include "server_world.h"

namespace cotenant::server::test {
namespace {

using Fault = fakes::MemoryStore::Fault;
using Seen = fakes::FakeWebSocket::Seen;
using codec::ServerAck;
using codec::ServerDesired;
using codec::ServerRefused;

template <class Message>
std::vector<Message> frames_of(const Seen& seen) {
  std::vector<Message> messages;
  for (const std::string& frame : seen.frames) {
    auto message = codec::decode_server_message(frame);
    EXPECT_TRUE(message) << frame;
    if (message && std::holds_alternative<Message>(*message)) {
      messages.push_back(std::get<Message>(*message));
    }
  }
  return messages;
}

// An agent that a test plays.
struct Peer {
  std::shared_ptr<ports::WebSocketListener> listener;
  std::shared_ptr<fakes::FakeWebSocket> socket = std::make_shared<fakes::FakeWebSocket>();

  void say(const codec::AgentMessage& message) { listener->on_text(codec::encode(message)); }

  Seen until_closed() const {
    return socket->wait_for([](const Seen& seen) { return seen.close_reason.has_value(); });
  }
  template <class Message>
  std::vector<Message> until(std::size_t count) const {
    return frames_of<Message>(socket->wait_for([&](const Seen& seen) {
      return seen.close_reason || frames_of<Message>(seen).size() >= count;
    }));
  }
};

class AgentHubTest : public testing::Test {
 protected:
  AgentHubTest() {
    auto engine = CoreEngine::load(store_, clock_, 1);
    EXPECT_TRUE(engine);
    loop_ = std::make_unique<CoreLoop>(std::move(*engine), nullptr);
    hub_ = std::make_unique<AgentHub>(*loop_);
    loop_->set_effect_sink(hub_.get());
    apply(register_command("f"));
  }
  ~AgentHubTest() override { loop_.reset(); }

  core::Reply apply(core::Command command) {
    auto reply = loop_->apply<core::Reply>(
        std::move(command), [](const core::Reply& got, const core::State&) { return got; });
    EXPECT_TRUE(reply) << (reply ? "" : reply.error().message);
    return reply.value_or(core::Reply{});
  }

  template <class T>
  T read(std::function<T(const core::State&)> view) {
    auto value = loop_->read<T>(std::move(view));
    EXPECT_TRUE(value);
    return *value;
  }

  bool is_connected(const std::string& id) {
    // The end of a connection takes two commands, the second posted by the first: let both be done.
    for (int i = 0; i < 2; ++i) {
      [[maybe_unused]] const auto done = loop_->apply<bool>(
          core::ObserveTasks{id, {}}, [](const core::Reply&, const core::State&) { return true; });
    }
    return read<bool>([&](const core::State& state) {
      const auto found = state.instances.find(id);
      return found != state.instances.end() && found->second.agent_connected;
    });
  }

  core::TaskStatus status_of(const std::string& task_id) {
    return read<core::TaskStatus>(
        [&](const core::State& state) { return state.tasks.at(task_id).last_status; });
  }

  std::vector<std::string> run_tasks(int count) {
    return std::get<core::RunTaskReply>(apply(run_command("f", count))).task_ids;
  }

  Peer open(const std::string& allowed_instance = "") {
    Peer peer;
    peer.listener = hub_->accept(allowed_instance);
    peer.listener->on_open(peer.socket);
    return peer;
  }

  static codec::AgentHello hello(const std::string& id, std::int64_t epoch) {
    codec::AgentHello hello;
    hello.boot_id = "boot";
    hello.epoch = epoch;
    hello.registration = connect_command(id).registration;
    return hello;
  }

  // Connected, and its first desired state read.
  Peer join(const std::string& id, std::int64_t epoch = 1) {
    Peer peer = open();
    peer.say(hello(id, epoch));
    EXPECT_EQ(peer.until<ServerDesired>(1).size(), 1U);
    return peer;
  }

  fakes::MemoryStore store_;
  fakes::SettableClock clock_{kStart};
  std::unique_ptr<AgentHub> hub_;
  std::unique_ptr<CoreLoop> loop_;
};

TEST_F(AgentHubTest, HelloJoinsAndIsToldEverything) {
  Peer first = join("i1");
  EXPECT_TRUE(is_connected("i1"));
  const auto tasks = run_tasks(2);

  Peer second = open();
  second.say(hello("i1", 2));
  const auto desired = second.until<ServerDesired>(1);
  ASSERT_EQ(desired.size(), 1U);
  EXPECT_TRUE(desired[0].full);
  EXPECT_EQ(desired[0].tasks.size(), 2U);
  EXPECT_TRUE(desired[0].removed.empty());
}

TEST_F(AgentHubTest, AConnectionSpeaksForTheInstanceThatItWasLetInFor) {
  Peer forger = open("i1");
  forger.say(hello("i2", 1));
  const auto refused = forger.until<codec::ServerRefused>(1);
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_NE(refused[0].reason.find("hello is instance i2's"), std::string::npos)
      << refused[0].reason;
  EXPECT_FALSE(is_connected("i2"));

  Peer honest = open("i1");
  honest.say(hello("i1", 1));
  EXPECT_EQ(honest.until<ServerDesired>(1).size(), 1U);
  EXPECT_TRUE(is_connected("i1"));
}

TEST_F(AgentHubTest, OnlyWhatChangedIsToldAfterwards) {
  Peer peer = join("i1");
  const auto tasks = run_tasks(2);
  auto desired = peer.until<ServerDesired>(2);
  ASSERT_EQ(desired.size(), 2U);
  EXPECT_FALSE(desired[1].full);
  EXPECT_EQ(desired[1].tasks.size(), 2U);
  EXPECT_GT(desired[1].revision, desired[0].revision);

  apply(core::StopTask{"default", tasks[0], ""});
  desired = peer.until<ServerDesired>(3);
  ASSERT_EQ(desired.size(), 3U);
  ASSERT_EQ(desired[2].tasks.size(), 1U);
  EXPECT_EQ(desired[2].tasks[0].task_id, tasks[0]);
  EXPECT_TRUE(desired[2].tasks[0].stop);

  peer.say(codec::AgentObserved{1, {gone(tasks[0])}});
  desired = peer.until<ServerDesired>(4);
  ASSERT_EQ(desired.size(), 4U);
  EXPECT_TRUE(desired[3].tasks.empty());
  EXPECT_EQ(desired[3].removed, (std::vector<std::string>{tasks[0]}));
}

TEST_F(AgentHubTest, AnAgentIsToldAsFastAsItReads) {
  Peer peer = join("i1");
  peer.socket->set_queued_bytes(ports::kStreamHighWaterBytes);
  const auto tasks = run_tasks(1);
  apply(core::StopTask{"default", tasks[0], ""});
  EXPECT_TRUE(is_connected("i1"));  // what is above has been done
  EXPECT_EQ(frames_of<ServerDesired>(peer.socket->seen()).size(), 1U);
  peer.socket->set_queued_bytes(0);
  peer.listener->on_drained();
  const auto desired = frames_of<ServerDesired>(peer.socket->seen());
  ASSERT_EQ(desired.size(), 3U);
  for (std::size_t i = 0; i < desired.size(); ++i) {
    EXPECT_EQ(desired[i].revision, static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_TRUE(desired[2].tasks.at(0).stop);
}

TEST_F(AgentHubTest, AStreamIsAskedForWhereItsAgentIs) {
  Peer peer = join("i1");
  const auto ask = [&](const std::string& instance) {
    return read<bool>([&](const core::State&) {
      return hub_->ask(instance, codec::ServerStream{"stream", "container", {}});
    });
  };
  EXPECT_TRUE(ask("i1"));
  EXPECT_FALSE(ask("i2"));
  const auto streams = frames_of<codec::ServerStream>(peer.socket->seen());
  ASSERT_EQ(streams.size(), 1U);
  EXPECT_EQ(streams[0].container_id, "container");
}

TEST_F(AgentHubTest, AgentsHearOnlyOfTheirOwn) {
  Peer one = join("i1");
  Peer other = join("i2");
  run_tasks(1);  // to i1: it registered first
  ASSERT_EQ(one.until<ServerDesired>(2).size(), 2U);
  EXPECT_EQ(frames_of<ServerDesired>(other.socket->seen()).size(), 1U);
}

TEST_F(AgentHubTest, WhatIsNoHelloEndsTheConnection) {
  codec::AgentHello other_version = hello("i1", 1);
  other_version.protocol = codec::kAgentProtocolVersion + 1;
  codec::AgentHello elsewhere = hello("i1", 1);
  elsewhere.registration.cluster = "nobody";
  struct Row {
    std::string name;
    std::string frame;
    std::string want;
  };
  const Row rows[] = {
      {"no JSON", "hello", "JSON"},
      {"unknown type", R"({"type":"greeting"})", "type"},
      {"a report before hello", codec::encode(codec::AgentMessage(codec::AgentObserved{1, {}})),
       "the first frame must be hello"},
      {"another version", codec::encode(codec::AgentMessage(other_version)),
       "agent protocol 2 is not 1"},
      {"an unknown cluster", codec::encode(codec::AgentMessage(elsewhere)),
       "cluster: 'nobody' does not exist"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Peer peer = open();
    peer.listener->on_text(row.frame);
    const Seen seen = peer.until_closed();
    ASSERT_TRUE(seen.close_reason);
    const auto refusals = frames_of<ServerRefused>(seen);
    const std::string words = refusals.empty() ? *seen.close_reason : refusals[0].reason;
    EXPECT_NE(words.find(row.want), std::string::npos) << words;
    peer.listener->on_closed("closed");
    EXPECT_FALSE(is_connected("i1"));
  }
}

TEST_F(AgentHubTest, HelloIsSaidOnce) {
  Peer peer = join("i1");
  peer.say(hello("i1", 2));
  const Seen seen = peer.until_closed();
  ASSERT_TRUE(seen.close_reason);
  EXPECT_NE(seen.close_reason->find("already"), std::string::npos);
}

TEST_F(AgentHubTest, ANewerConnectionClosesTheOlder) {
  Peer older = join("i1", 5);
  Peer newer = join("i1", 6);
  ASSERT_TRUE(older.until_closed().close_reason);
  // The older one's end says nothing of the newer one.
  older.listener->on_closed("closed");
  EXPECT_TRUE(is_connected("i1"));
  run_tasks(1);
  EXPECT_EQ(newer.until<ServerDesired>(2).size(), 2U);
  newer.listener->on_closed("gone");
  EXPECT_FALSE(is_connected("i1"));
}

TEST_F(AgentHubTest, AnOlderConnectionIsRefusedAndChangesNothing) {
  Peer newer = join("i1", 6);
  const auto tasks = run_tasks(1);
  Peer older = open();
  codec::AgentHello stale = hello("i1", 5);
  stale.observed = {gone(tasks[0])};
  older.say(stale);
  older.say(codec::AgentObserved{1, {gone(tasks[0])}});
  const Seen seen = older.until_closed();
  ASSERT_EQ(frames_of<ServerRefused>(seen).size(), 1U);
  EXPECT_NE(frames_of<ServerRefused>(seen)[0].reason.find("another connection (epoch 6)"),
            std::string::npos);
  older.say(codec::AgentObserved{2, {gone(tasks[0])}});
  older.listener->on_closed("closed");

  EXPECT_EQ(status_of(tasks[0]), core::TaskStatus::kPending);
  EXPECT_TRUE(is_connected("i1"));
  EXPECT_FALSE(newer.socket->seen().close_reason);
  EXPECT_TRUE(frames_of<ServerAck>(older.socket->seen()).empty());
}

TEST_F(AgentHubTest, WhatTheHelloObservedCounts) {
  Peer first = join("i1", 1);
  const auto tasks = run_tasks(1);
  Peer second = open();
  codec::AgentHello again = hello("i1", 2);
  again.observed = {gone(tasks[0])};
  second.say(again);
  const auto desired = second.until<ServerDesired>(2);
  ASSERT_EQ(desired.size(), 2U);
  EXPECT_EQ(desired[0].tasks.size(), 1U);
  EXPECT_EQ(desired[1].removed, tasks);
  EXPECT_EQ(status_of(tasks[0]), core::TaskStatus::kStopped);
}

TEST_F(AgentHubTest, AnAckMeansStored) {
  Peer peer = join("i1");
  const auto tasks = run_tasks(1);
  peer.say(codec::AgentObserved{1, {gone(tasks[0])}});
  const auto acks = peer.until<ServerAck>(1);
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0].seq, 1);
  EXPECT_NE(store_.records().at("task/" + tasks[0]).find("STOPPED"), std::string::npos);

  peer.say(codec::AgentObserved{2, {}});
  EXPECT_EQ(peer.until<ServerAck>(2).size(), 2U) << "an empty report is acknowledged as well";
}

TEST_F(AgentHubTest, AReportThatCameTwiceCountsOnce) {
  Peer peer = join("i1");
  const auto tasks = run_tasks(1);
  peer.say(codec::AgentObserved{1, {gone(tasks[0])}});
  peer.say(codec::AgentObserved{1, {gone(tasks[0])}});
  peer.say(codec::AgentObserved{2, {}});
  const auto acks = peer.until<ServerAck>(2);
  ASSERT_EQ(acks.size(), 2U);
  EXPECT_EQ(acks[0].seq, 1);
  EXPECT_EQ(acks[1].seq, 2);
}

TEST_F(AgentHubTest, AReportThatIsMissingEndsTheConnection) {
  Peer peer = join("i1");
  const auto tasks = run_tasks(1);
  peer.say(codec::AgentObserved{1, {}});
  ASSERT_EQ(peer.until<ServerAck>(1).size(), 1U);
  peer.say(codec::AgentObserved{3, {gone(tasks[0])}});
  const Seen seen = peer.until_closed();
  ASSERT_TRUE(seen.close_reason) << "an ack of 3 would tell of 2 as stored";
  EXPECT_EQ(*seen.close_reason, "report 3 came after report 1");
  EXPECT_EQ(frames_of<ServerAck>(seen).size(), 1U);
  EXPECT_EQ(status_of(tasks[0]), core::TaskStatus::kPending);
}

TEST_F(AgentHubTest, WhatIsNotStoredIsNotAcknowledged) {
  Peer peer = join("i1");
  const auto tasks = run_tasks(1);
  store_.set_fault(Fault::kRefused);
  peer.say(codec::AgentObserved{1, {gone(tasks[0])}});
  const Seen seen = peer.until_closed();
  ASSERT_TRUE(seen.close_reason) << "the agent says everything again on its next connection";
  EXPECT_NE(seen.close_reason->find("the store refuses writes"), std::string::npos);
  EXPECT_TRUE(frames_of<ServerAck>(seen).empty());
  EXPECT_EQ(status_of(tasks[0]), core::TaskStatus::kPending);
}

TEST_F(AgentHubTest, ALongReportIsStoredWholeBeforeItsOneAck) {
  Peer peer = join("i1");
  std::vector<core::TaskObservation> report;
  std::vector<std::string> tasks;
  for (int i = 0; i < 4; ++i) {
    for (const std::string& id : run_tasks(10)) {
      tasks.push_back(id);
      report.push_back(gone(id));
    }
  }
  ASSERT_EQ(tasks.size(), 40U) << "more than one command may touch";
  peer.say(codec::AgentObserved{1, std::move(report)});
  ASSERT_EQ(peer.until<ServerAck>(1).size(), 1U);
  for (const std::string& id : tasks) {
    EXPECT_NE(store_.records().at("task/" + id).find("STOPPED"), std::string::npos);
  }
  peer.say(codec::AgentObserved{2, {}});
  EXPECT_EQ(peer.until<ServerAck>(2).size(), 2U) << "one for each report";
}

TEST_F(AgentHubTest, ReportsOfSomeoneElsesTasksAreIgnored) {
  Peer one = join("i1");
  Peer other = join("i2");
  const auto tasks = run_tasks(1);  // on i1
  other.say(codec::AgentObserved{1, {gone(tasks[0]), gone("nobody")}});
  ASSERT_EQ(other.until<ServerAck>(1).size(), 1U);
  EXPECT_EQ(status_of(tasks[0]), core::TaskStatus::kPending);
}

TEST_F(AgentHubTest, AConnectionThatSaidNothingMayEnd) {
  Peer peer = open();
  peer.listener->on_closed("gone");
  EXPECT_FALSE(is_connected("i1"));
}

}  // namespace
}  // namespace cotenant::server::test
