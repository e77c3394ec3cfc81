#include "server/stream_hub.h"

#include <gtest/gtest.h>

#include "fakes/fake_web_socket.h"
#include "fakes/settable_clock.h"

namespace cotenant::server {
namespace {

using base::ErrorCode;
using fakes::FakeWebSocket;

class StreamHubTest : public testing::Test {
 protected:
  std::string open() {
    const auto id = hub_.open("instance", "container", {});
    EXPECT_TRUE(id);
    return id.value_or("");
  }

  fakes::SettableClock clock_{1'000'000};
  bool connected_ = true;
  std::vector<std::pair<std::string, codec::ServerStream>> asked_;
  StreamHub hub_{clock_, [this](const std::string& instance, const codec::ServerStream& stream) {
                   if (connected_) asked_.emplace_back(instance, stream);
                   return connected_;
                 }};
  std::shared_ptr<FakeWebSocket> client_ = std::make_shared<FakeWebSocket>();
  std::shared_ptr<FakeWebSocket> agent_ = std::make_shared<FakeWebSocket>();
};

TEST_F(StreamHubTest, PassesFramesBothWays) {
  const std::string id = open();
  EXPECT_EQ(id.size(), 32u);
  const auto client = hub_.accept_client(id);
  ASSERT_TRUE(client);
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].first, "instance");
  EXPECT_EQ(asked_[0].second.stream_id, id);
  EXPECT_EQ(asked_[0].second.container_id, "container");
  (*client)->on_open(client_);
  EXPECT_FALSE(client_->seen().reading) << "nobody is there to read it for";
  EXPECT_TRUE((*client)->on_binary("early"));
  const auto agent = hub_.accept_agent(id, "instance");
  ASSERT_TRUE(agent) << agent.error().message;
  (*agent)->on_open(agent_);
  EXPECT_TRUE(client_->seen().reading);
  EXPECT_TRUE((*agent)->on_binary("from the agent"));
  EXPECT_TRUE((*client)->on_binary("from the client"));
  EXPECT_EQ(client_->seen().frames, std::vector<std::string>{"from the agent"});
  EXPECT_EQ(agent_->seen().frames, (std::vector<std::string>{"early", "from the client"}));

  // The slower one sets the pace.
  client_->set_queued_bytes(ports::kStreamHighWaterBytes);
  EXPECT_TRUE((*agent)->on_binary("more"));
  EXPECT_FALSE(agent_->seen().reading);
  client_->set_queued_bytes(0);
  (*client)->on_drained();
  EXPECT_TRUE(agent_->seen().reading);

  // Either end takes the other along.
  (*client)->on_closed("gone");
  EXPECT_EQ(agent_->seen().close_reason, "gone");
  EXPECT_TRUE((*agent)->on_binary("into the void"));
  (*agent)->on_closed("gone");
}

TEST_F(StreamHubTest, AnIdIsGoodOnceAndForAWhile) {
  EXPECT_FALSE(hub_.accept_client("0123456789abcdef0123456789abcdef"));
  EXPECT_FALSE(hub_.accept_agent("0123456789abcdef0123456789abcdef", ""));
  const std::string id = open();
  EXPECT_FALSE(hub_.accept_agent(id, "instance")) << "nobody has asked for it yet";
  const auto client = hub_.accept_client(id);
  ASSERT_TRUE(client);
  EXPECT_FALSE(hub_.accept_client(id));
  EXPECT_FALSE(hub_.accept_agent(id, "another instance"));
  const auto agent = hub_.accept_agent(id, "");
  EXPECT_TRUE(agent);
  EXPECT_FALSE(hub_.accept_agent(id, ""));

  const std::string late = open();
  clock_.advance(StreamHub::kStepMs + 1);
  EXPECT_FALSE(hub_.accept_client(late));
}

TEST_F(StreamHubTest, AnAgentThatDoesNotComeEndsTheClient) {
  const std::string id = open();
  const auto client = hub_.accept_client(id);
  ASSERT_TRUE(client);
  (*client)->on_open(client_);
  clock_.advance(StreamHub::kStepMs + 1);
  open();
  EXPECT_TRUE(client_->seen().close_reason);
  EXPECT_FALSE(hub_.accept_agent(id, "instance"));
}

TEST_F(StreamHubTest, AHandshakeThatFailsTakesTheOtherSideAlong) {
  const std::string id = open();
  const auto client = hub_.accept_client(id);
  ASSERT_TRUE(client);
  (*client)->on_open(client_);
  ASSERT_TRUE(hub_.accept_agent(id, "instance"));  // nobody holds its listener: it never opens
  EXPECT_TRUE(client_->seen().close_reason);

  const std::string second = open();
  {
    const auto fails = hub_.accept_client(second);
    ASSERT_TRUE(fails);
    const auto agent = hub_.accept_agent(second, "instance");
    ASSERT_TRUE(agent);
    (*agent)->on_open(agent_);
    EXPECT_FALSE(agent_->seen().close_reason);
  }
  EXPECT_TRUE(agent_->seen().close_reason);
}

TEST_F(StreamHubTest, AnAgentThatIsAwayIsARefusal) {
  connected_ = false;
  const auto client = hub_.accept_client(open());
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kUnavailable);
}

TEST_F(StreamHubTest, WhatIsOverCountsNoMore) {
  for (std::size_t i = 0; i < 2 * StreamHub::kStreamsPerInstanceMax; ++i) {
    const std::string id = open();
    const auto client = hub_.accept_client(id);
    ASSERT_TRUE(client);
    (*client)->on_open(std::make_shared<FakeWebSocket>());
    (*client)->on_closed("left");
  }
}

TEST_F(StreamHubTest, IsBoundedAndForgetsWhatIsOver) {
  for (std::size_t i = 0; i < StreamHub::kStreamsPerInstanceMax; ++i) open();
  const auto more = hub_.open("instance", "container", {});
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kLimitExceeded);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "of instance instance", more.error().message);
  for (std::size_t i = StreamHub::kStreamsPerInstanceMax; i < StreamHub::kStreamsMax; ++i) {
    ASSERT_TRUE(hub_.open(std::to_string(i), "container", {}));
  }
  const auto elsewhere = hub_.open("another", "container", {});
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code, ErrorCode::kLimitExceeded);
  clock_.advance(StreamHub::kStepMs + 1);
  EXPECT_TRUE(hub_.open("instance", "container", {}));
}

}  // namespace
}  // namespace cotenant::server
