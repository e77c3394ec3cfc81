#include "codec/stream_message.h"

#include <gtest/gtest.h>

#include "codec/agent_message.h"

namespace cotenant::codec {
namespace {

TEST(StreamMessageTest, RequestsGoThereAndBack) {
  StreamRequest logs;
  logs.follow = true;
  logs.tail = 0;
  logs.since_ms = 1'796'000'000'123;
  logs.timestamps = true;
  StreamRequest exec;
  exec.kind = StreamKind::kExec;
  exec.command = {"/bin/sh", "-c", "echo \"$0\""};
  exec.with_input = true;
  exec.tty = true;
  for (const StreamRequest& request : {StreamRequest(), logs, exec}) {
    const auto message =
        decode_server_message(encode(ServerMessage(ServerStream{"s", "c", request})));
    ASSERT_TRUE(message) << message.error().message;
    const auto& got = std::get<ServerStream>(*message);
    EXPECT_EQ(got.stream_id, "s");
    EXPECT_EQ(got.container_id, "c");
    EXPECT_EQ(encode_stream_request(got.request), encode_stream_request(request));
    EXPECT_EQ(got.request.tail, request.tail);
  }
}

TEST(StreamMessageTest, BadRequestsNameTheMember) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row :
       {Row{"{}", "kind"}, Row{R"({"kind":"tail"})", "kind: 'tail' must be logs"},
        Row{R"({"kind":"logs","tail":-1})", "tail"}, Row{R"({"kind":"logs","tail":"5"})", "tail"},
        Row{R"({"kind":"logs","follow":1})", "follow"},
        Row{R"({"kind":"exec"})", "command: must name a program"},
        Row{R"({"kind":"exec","command":[""]})", "command: must name a program"},
        Row{R"({"kind":"exec","command":["echo","a\u0000b"]})", "command: must not hold"},
        Row{R"({"kind":"exec","command":"sh"})", "command"}}) {
    const auto got = decode_stream_request(*Json::parse(row.text));
    ASSERT_FALSE(got) << row.text;
    EXPECT_EQ(got.error().code, base::ErrorCode::kInvalidParameter);
    EXPECT_PRED_FORMAT2(testing::IsSubstring, row.want, got.error().message);
  }
  StreamRequest exec;
  exec.kind = StreamKind::kExec;
  exec.command = {"echo", std::string(kExecCommandBytes - 6, 'x')};
  EXPECT_TRUE(decode_stream_request(encode_stream_request(exec)));
  exec.command.back() += 'x';
  EXPECT_FALSE(decode_stream_request(encode_stream_request(exec)));
}

TEST(StreamMessageTest, FramesNameTheirChannel) {
  const std::string frame = encode_stream_frame(StreamChannel::kStderr, std::string("a\0b", 3));
  const auto got = decode_stream_frame(frame);
  ASSERT_TRUE(got);
  EXPECT_EQ(got->channel, StreamChannel::kStderr);
  EXPECT_EQ(got->bytes, std::string_view("a\0b", 3));
  EXPECT_FALSE(decode_stream_frame(""));
  EXPECT_FALSE(decode_stream_frame("\x07x"));
  EXPECT_FALSE(decode_stream_frame("\xffx"));

  const StreamEnd end = decode_stream_end(encode_stream_end({"no \"such\"", 137}));
  EXPECT_EQ(end.error, "no \"such\"");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(decode_stream_end(encode_stream_end({})).exit_code, std::nullopt);
  EXPECT_NE(decode_stream_end("garbage").error, "");
  // The engine's words may be of any bytes.
  EXPECT_EQ(decode_stream_end(encode_stream_end({"no \xff such", 1})).error, "no ? such");
}

}  // namespace
}  // namespace cotenant::codec
