#include "agent/server_dialog.h"

#include <gtest/gtest.h>

#include <set>

#include "agent/labels.h"
#include "codec/agent_message.h"
#include "codec/json.h"
#include "fakes/fake_web_socket.h"
#include "logic_world.h"

namespace cotenant::agent {
namespace {

using Heard = ServerDialog::Heard;
using codec::ServerDesired;

class ServerDialogTest : public testing::Test {
 protected:
  std::shared_ptr<fakes::FakeWebSocket> open(std::int64_t epoch) {
    auto socket = std::make_shared<fakes::FakeWebSocket>();
    dialog_.opened(epoch, {}, socket);
    return socket;
  }
  Heard hear(std::int64_t epoch, codec::ServerMessage message) {
    return dialog_.received(epoch, std::move(message));
  }
  // The names of the tasks that the logic knows of.
  std::vector<std::string> desired() const {
    std::vector<std::string> ids;
    for (const core::TaskObservation& task : logic_.observations()) ids.push_back(task.task_id);
    return ids;
  }

  AgentLogic logic_{LogicOptions{}};
  ServerDialog dialog_{logic_, 15'000, "boot", "server"};
};

using Ids = std::vector<std::string>;

TEST_F(ServerDialogTest, TheFirstFullStateAcceptsAndChangesFollow) {
  const auto socket = open(1);
  EXPECT_EQ(socket->seen().frames.size(), 1u) << "the hello";
  EXPECT_EQ(hear(1, ServerDesired{1, true, {task("a", {plain("x")})}, {}}), Heard::kAccepted);
  EXPECT_EQ(hear(1, ServerDesired{2, false, {task("b", {plain("y")})}, {}}), Heard::kNothing);
  EXPECT_EQ(desired(), (Ids{"a", "b"}));
  hear(1, ServerDesired{3, false, {}, {"a"}});
  EXPECT_EQ(desired(), Ids{"b"});
  EXPECT_FALSE(socket->seen().close_reason);
}

TEST_F(ServerDialogTest, AStateInPartsCountsOnceItIsWhole) {
  const auto socket = open(1);
  EXPECT_EQ(hear(1, ServerDesired{1, true, {task("a", {plain("x")})}, {}, true}), Heard::kNothing);
  EXPECT_EQ(desired(), Ids{}) << "the others would be taken for unwanted";
  EXPECT_EQ(hear(1, ServerDesired{2, true, {task("b", {plain("y")})}, {}, true}), Heard::kNothing);
  EXPECT_EQ(hear(1, ServerDesired{2, true, {task("b", {plain("y")})}, {}, true}), Heard::kNothing);
  EXPECT_EQ(hear(1, ServerDesired{3, true, {task("c", {plain("z")})}, {}}), Heard::kAccepted);
  EXPECT_EQ(desired(), (Ids{"a", "b", "c"}));
  EXPECT_FALSE(socket->seen().close_reason);

  // A connection that broke in the middle leaves nothing behind.
  open(2);
  hear(2, ServerDesired{1, true, {task("d", {plain("w")})}, {}, true});
  open(3);
  EXPECT_EQ(hear(3, ServerDesired{1, true, {task("e", {plain("v")})}, {}}), Heard::kAccepted);
  EXPECT_EQ(desired(), Ids{"e"});
}

TEST_F(ServerDialogTest, APartThatIsMissingEndsTheConnection) {
  for (const ServerDesired& second : {ServerDesired{3, true, {task("b", {plain("y")})}, {}},
                                      ServerDesired{2, false, {task("b", {plain("y")})}, {}}}) {
    const std::int64_t epoch = second.revision;
    const auto socket = open(epoch);
    hear(epoch, ServerDesired{1, true, {task("a", {plain("x")})}, {}, true});
    EXPECT_EQ(hear(epoch, second), Heard::kNothing);
    EXPECT_TRUE(socket->seen().close_reason);
    EXPECT_EQ(desired(), Ids{});
  }
}

TEST_F(ServerDialogTest, AHelloThatIsTooLargeIsFollowedByReports) {
  // Ten thousand containers that ended with a long reason.
  std::vector<ports::ContainerState> containers;
  for (int i = 0; i < 10'000; ++i) {
    ports::ContainerState& state = containers.emplace_back();
    state.id = fmt::format("rt{}", i);
    state.labels = {{kTaskLabel, fmt::format("t{:05}", i)},
                    {kContainerLabel, fmt::format("c{}", i)},
                    {kContainerNameLabel, "main"}};
    state.phase = ports::ContainerPhase::kStopped;
    state.error = std::string(900, 'e');
  }
  logic_.observe(logic_.begin_snapshot(), {containers, {}});
  const auto socket = open(1);
  ASSERT_EQ(socket->seen().frames.size(), 1u);
  EXPECT_LE(socket->seen().frames[0].size(), base::limits::kAgentFrameBytes);
  dialog_.report(1);
  EXPECT_EQ(socket->seen().frames.size(), 1u) << "before the hello is answered";
  std::vector<core::DesiredTask> tasks;
  for (int i = 0; i < 10'000; ++i) {
    core::DesiredContainer container = plain("main");
    container.id = fmt::format("c{}", i);
    tasks.push_back(task(fmt::format("t{:05}", i), {container}));
  }
  hear(1, ServerDesired{1, true, tasks, {}});
  logic_.step(1'000'000);
  dialog_.report(1'000'000);
  std::set<std::string> told;
  std::int64_t seq = 0;
  for (const std::string& frame : socket->seen().frames) {
    ASSERT_LE(frame.size(), base::limits::kAgentFrameBytes);
    const auto json = codec::Json::parse(frame);
    ASSERT_TRUE(json) << json.error().message;
    const bool is_hello = json->string_or("type", "") == "hello";
    if (!is_hello) {
      EXPECT_EQ(json->integer_or("seq", 0), ++seq);
    }
    for (const codec::Json& seen : json->array_or_empty(is_hello ? "observed" : "tasks")) {
      told.insert(seen.string_or("taskId", ""));
    }
  }
  EXPECT_GT(seq, 1);
  EXPECT_EQ(told.size(), 10'000u);
}

TEST_F(ServerDialogTest, AChangeThatCameTwiceOrLateIsIgnored) {
  const auto socket = open(1);
  hear(1, ServerDesired{1, true, {task("a", {plain("x")})}, {}});
  hear(1, ServerDesired{2, false, {}, {"a"}});
  hear(1, ServerDesired{1, true, {task("a", {plain("x")})}, {}});
  hear(1, ServerDesired{2, false, {}, {"a"}});
  EXPECT_EQ(desired(), Ids{});
  EXPECT_FALSE(socket->seen().close_reason);
}

TEST_F(ServerDialogTest, AChangeThatIsMissingEndsTheConnection) {
  struct Case {
    const char* name;
    std::vector<ServerDesired> frames;
  };
  const Case cases[] = {
      {"a gap", {{1, true, {}, {}}, {3, false, {task("a", {plain("x")})}, {}}}},
      {"a change before everything", {{2, false, {task("a", {plain("x")})}, {}}}},
  };
  std::int64_t epoch = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto socket = open(++epoch);
    for (const ServerDesired& frame : c.frames) hear(epoch, frame);
    EXPECT_TRUE(socket->seen().close_reason);
    EXPECT_EQ(desired(), Ids{});
    EXPECT_TRUE(dialog_.closed(epoch));
    EXPECT_FALSE(dialog_.synced());
  }
}

TEST_F(ServerDialogTest, EachConnectionCountsAnew) {
  for (const std::int64_t epoch : {1, 2}) {
    const auto socket = open(epoch);
    EXPECT_EQ(hear(epoch, ServerDesired{1, true, {}, {}}), Heard::kAccepted);
    EXPECT_EQ(hear(epoch - 1, ServerDesired{2, true, {task("a", {plain("x")})}, {}}),
              Heard::kNothing)
        << "of the older connection";
    EXPECT_EQ(desired(), Ids{});
  }
  EXPECT_FALSE(dialog_.closed(1));
  EXPECT_TRUE(dialog_.synced());
}

// An instance that registers anew starts with nothing reserved: what nobody desires any more and still
// runs, or is about to, must be in its hello.
TEST_F(ServerDialogTest, AHelloNamesWhatRunsOrMayComeToRun) {
  LogicWorld world;
  world.images.insert("image");
  open(1);
  hear(1, ServerDesired{1, true, {task("a", {plain("x")}), task("b", {plain("y")})}, {}});
  const auto look = [&] {
    const std::uint64_t token = logic_.begin_snapshot();
    logic_.observe(token, world.snapshot());
  };
  const auto hello_names = [&](std::int64_t epoch) {
    core::InstanceRegistration registration;
    registration.id = "0123456789abcdef0123456789abcdef";
    registration.cluster = "default";
    registration.cpu_units = 1024;
    registration.memory_mib = 1024;
    auto socket = std::make_shared<fakes::FakeWebSocket>();
    dialog_.opened(epoch, registration, socket);
    const auto message = codec::decode_agent_message(socket->seen().frames.at(0));
    return message ? std::get<codec::AgentHello>(*message).running : Ids{message.error().message};
  };
  look();
  // Until both are to be started; then only x's start comes true and is answered.
  for (int round = 0; round < 20 && world.ever_ran.empty(); ++round) {
    world.now_ms += 1000;
    for (const Action& action : logic_.step(world.now_ms)) {
      const auto* start = std::get_if<StartContainer>(&action.what);
      if (start != nullptr && start->container_id == "id-y") continue;
      const base::Status status = world.apply(action);
      logic_.finish({action.id, status}, world.now_ms);
    }
    look();
  }
  ASSERT_TRUE(world.ever_ran.contains("id-x"));
  EXPECT_EQ(hello_names(2), (Ids{"a", "b"}));
  hear(2, ServerDesired{1, true, {}, {}});
  EXPECT_EQ(hello_names(3), (Ids{"a", "b"})) << "nobody desires them, and they are not gone";
  for (int round = 0; round < 20; ++round) {
    world.now_ms += 30'000;
    for (const Action& action : logic_.step(world.now_ms)) {
      const base::Status status = world.apply(action);
      logic_.finish({action.id, status}, world.now_ms);
    }
    look();
  }
  EXPECT_EQ(hello_names(4), Ids{});
}

TEST_F(ServerDialogTest, ARefusalIsHandedOnAndTheCallerHangsUp) {
  const auto socket = open(1);
  EXPECT_EQ(hear(1, codec::ServerRefused{"another cluster"}), Heard::kRefused);
  EXPECT_FALSE(socket->seen().close_reason);
  dialog_.hang_up("refused");
  EXPECT_EQ(socket->seen().close_reason, "refused");
}

// Nothing is reserved for what runs here: it is desired no more, whatever was desired before.
TEST_F(ServerDialogTest, ARefusalMayAskToStopEverything) {
  std::int64_t epoch = 0;
  for (const bool leave : {false, true}) {
    open(++epoch);
    hear(epoch, ServerDesired{1, true, {task("a", {plain("x")})}, {}});
    EXPECT_EQ(desired(), Ids{"a"});
    EXPECT_EQ(hear(epoch, codec::ServerRefused{"deregistered", true, leave}),
              leave ? Heard::kDismissed : Heard::kStopFirst);
    EXPECT_EQ(desired(), Ids{});
  }
}

}  // namespace
}  // namespace cotenant::agent
