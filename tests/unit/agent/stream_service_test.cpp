#include "agent/stream_service.h"

#include <gtest/gtest.h>

#include "fakes/fake_container_streams.h"
#include "fakes/fake_web_socket.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using codec::StreamChannel;
using fakes::FakeWebSocket;
using ports::OutputStream;

class StreamServiceTest : public testing::Test {
 protected:
  ~StreamServiceTest() override {
    // As a real socket whose peer hangs up.
    if (listener_ && !closed_) listener_->on_closed("test over");
    service_.stop();
  }

  StreamConnector connector() {
    return [this](const std::string& id, std::shared_ptr<ports::WebSocketListener> listener)
               -> base::Result<std::shared_ptr<ports::WebSocket>> {
      if (refuse_) return base::fail(ErrorCode::kProtocol, "answered 404");
      stream_id_ = id;
      listener_ = listener;
      listener->on_open(socket_);
      return socket_;
    };
  }
  void open(codec::StreamRequest request, const std::string& runtime_id = "rt") {
    service_.open("stream-1", runtime_id, std::move(request));
  }
  // The agent's frames until its end, which is answered by hanging up.
  std::vector<std::string> frames_until_end() {
    const auto seen = socket_->wait_for([](const FakeWebSocket::Seen& now) {
      return !now.frames.empty() &&
             now.frames.back().front() == static_cast<char>(StreamChannel::kEnd);
    });
    listener_->on_closed("the client has what it wanted");
    closed_ = true;
    return seen.frames;
  }
  std::string text_of(const std::vector<std::string>& frames, StreamChannel channel) {
    std::string text;
    for (const std::string& frame : frames) {
      if (frame.front() == static_cast<char>(channel)) text += frame.substr(1);
    }
    return text;
  }
  codec::StreamEnd end_of(const std::vector<std::string>& frames) {
    return codec::decode_stream_end(text_of(frames, StreamChannel::kEnd));
  }
  static codec::StreamRequest exec_request() {
    codec::StreamRequest request;
    request.kind = codec::StreamKind::kExec;
    request.command = {"cat"};
    request.with_input = true;
    return request;
  }

  fakes::FakeContainerStreams streams_;
  std::shared_ptr<FakeWebSocket> socket_ = std::make_shared<FakeWebSocket>();
  std::shared_ptr<ports::WebSocketListener> listener_;
  std::string stream_id_;
  bool refuse_ = false;
  bool closed_ = false;
  StreamService service_{streams_, connector()};
};

TEST_F(StreamServiceTest, LogsComeAsTheyWerePrinted) {
  streams_.add_log(OutputStream::kStdout, "one\n");
  streams_.add_log(OutputStream::kStderr, "two\n");
  streams_.add_log(OutputStream::kStdout, std::string(3 * codec::kStreamFrameBytes, 'x'));
  codec::StreamRequest request;
  request.tail = 100;
  open(request);
  const auto frames = frames_until_end();
  EXPECT_EQ(stream_id_, "stream-1");
  EXPECT_EQ(frames.front(), codec::encode_stream_frame(StreamChannel::kReady));
  EXPECT_EQ(text_of(frames, StreamChannel::kStdout),
            "one\n" + std::string(3 * codec::kStreamFrameBytes, 'x'));
  EXPECT_EQ(text_of(frames, StreamChannel::kStderr), "two\n");
  for (const std::string& frame : frames) EXPECT_LE(frame.size(), codec::kStreamFrameBytes + 1);
  EXPECT_EQ(end_of(frames).error, "");
  EXPECT_EQ(streams_.asked().at(0).first, "rt");
  EXPECT_EQ(streams_.asked().at(0).second.tail, 100);
}

TEST_F(StreamServiceTest, FollowingEndsWhenTheReaderLeaves) {
  codec::StreamRequest request;
  request.follow = true;
  open(request);
  socket_->wait_for([](const FakeWebSocket::Seen& seen) { return !seen.frames.empty(); });
  streams_.add_log(OutputStream::kStdout, "late\n");
  const auto seen =
      socket_->wait_for([](const FakeWebSocket::Seen& now) { return now.frames.size() >= 2; });
  EXPECT_EQ(text_of(seen.frames, StreamChannel::kStdout), "late\n");
  listener_->on_closed("the reader has left");
  closed_ = true;
  service_.stop();  // returns: the thread has ended
}

TEST_F(StreamServiceTest, ASlowReaderHoldsTheLogsUp) {
  socket_->set_queued_bytes(ports::kStreamHighWaterBytes);
  streams_.add_log(OutputStream::kStdout, "waits\n");
  open({});
  // Nothing goes out, not even that it is ready, until what waits is less.
  const auto looked = [](const FakeWebSocket::Seen& seen) { return seen.looks > 0; };
  EXPECT_TRUE(socket_->wait_for(looked).frames.empty());
  socket_->set_queued_bytes(0);
  listener_->on_drained();
  const auto frames = frames_until_end();
  EXPECT_EQ(text_of(frames, StreamChannel::kStdout), "waits\n");
}

TEST_F(StreamServiceTest, WhatCannotBeShownSaysWhy) {
  streams_.fail_logs({ErrorCode::kNotFound, "no such container"});
  open({});
  EXPECT_EQ(end_of(frames_until_end()).error, "no such container");
}

TEST_F(StreamServiceTest, AContainerThatIsNotHereSaysSo) {
  open({}, "");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "not on its instance",
                      end_of(frames_until_end()).error);
}

TEST_F(StreamServiceTest, AProgramGetsInputAndItsExitCodeComesBack) {
  streams_.set_exit_code(7);
  open(exec_request());
  socket_->wait_for([](const FakeWebSocket::Seen& seen) { return !seen.frames.empty(); });
  EXPECT_TRUE(listener_->on_binary(codec::encode_stream_frame(StreamChannel::kStdin, "hello ")));
  EXPECT_TRUE(listener_->on_binary(codec::encode_stream_frame(StreamChannel::kResize, "80x24")));
  EXPECT_TRUE(listener_->on_binary(codec::encode_stream_frame(StreamChannel::kResize, "0x-1")));
  socket_->wait_for([&](const FakeWebSocket::Seen& seen) {
    return text_of(seen.frames, StreamChannel::kStdout) == "hello 80 by 24";
  });
  EXPECT_TRUE(listener_->on_binary(codec::encode_stream_frame(StreamChannel::kStdinEnd)));
  const auto frames = frames_until_end();
  EXPECT_EQ(text_of(frames, StreamChannel::kStdout), "hello 80 by 24");
  EXPECT_EQ(end_of(frames).exit_code, 7);
  EXPECT_EQ(streams_.programs().at(0).command, std::vector<std::string>{"cat"});
}

TEST_F(StreamServiceTest, AClientThatLeavesEndsTheConnectionToTheProgram) {
  open(exec_request());
  socket_->wait_for([](const FakeWebSocket::Seen& seen) { return !seen.frames.empty(); });
  listener_->on_closed("the client died");
  closed_ = true;
  service_.stop();  // returns: both threads have ended
}

TEST_F(StreamServiceTest, AProgramThatCannotRunSaysWhy) {
  streams_.fail_exec({ErrorCode::kConflict, "it is not running"});
  open(exec_request());
  const auto frames = frames_until_end();
  EXPECT_EQ(end_of(frames).error, "it is not running");
  EXPECT_EQ(frames.size(), 1u) << "it never was ready";
}

TEST_F(StreamServiceTest, InputBeyondWhatMayWaitIsNotRead) {
  // The program's connection is held up by its output, so that input piles up.
  open(exec_request());
  socket_->wait_for([](const FakeWebSocket::Seen& seen) { return !seen.frames.empty(); });
  const std::string frame =
      codec::encode_stream_frame(StreamChannel::kStdin, std::string(300 * 1024, 'i'));
  listener_->on_binary(frame);
  // It was told to stop reading, and to go on once the program had taken it.
  const auto seen = socket_->wait_for([&](const FakeWebSocket::Seen& now) {
    return text_of(now.frames, StreamChannel::kStdout).size() == 300 * 1024 && now.reading;
  });
  EXPECT_TRUE(seen.reading);
  EXPECT_EQ(seen.reading_changes, 2);
}

TEST_F(StreamServiceTest, NonsenseFromTheClientEndsIt) {
  open(exec_request());
  socket_->wait_for([](const FakeWebSocket::Seen& seen) { return !seen.frames.empty(); });
  EXPECT_FALSE(listener_->on_binary("\x2a nonsense"));
  listener_->on_text("text");
  EXPECT_TRUE(socket_->seen().close_reason);
}

TEST_F(StreamServiceTest, AConnectionThatIsRefusedIsGivenUp) {
  refuse_ = true;
  open({});
  service_.stop();
  EXPECT_TRUE(streams_.asked().empty());
}

}  // namespace
}  // namespace cotenant::agent
