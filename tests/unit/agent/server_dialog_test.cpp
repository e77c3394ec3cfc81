#include "agent/server_dialog.h"

#include <gtest/gtest.h>

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
