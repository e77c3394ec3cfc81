#include "adapters/docker_streams.h"

#include <gtest/gtest.h>

#include "adapters/docker_frames.h"
#include "scripted_client.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using ports::OutputStream;

std::string multiplexed(int stream, const std::string& text) {
  std::string frame{static_cast<char>(stream),
                    0,
                    0,
                    0,
                    0,
                    0,
                    static_cast<char>(text.size() >> 8U),
                    static_cast<char>(text.size() & 0xFFU)};
  return frame + text;
}

struct Heard {
  std::string out;
  std::string err;
  ports::OnOutput sink() {
    return [this](OutputStream stream, std::string_view text) {
      (stream == OutputStream::kStderr ? err : out) += text;
    };
  }
};

TEST(DockerFrames, ComeApartWhereverTheyAreCut) {
  const std::string text = multiplexed(1, "hello\n") + multiplexed(2, std::string(300, 'e')) +
                           multiplexed(1, "") + multiplexed(1, "bye\n");
  for (std::size_t size = 1; size <= text.size(); ++size) {
    Heard heard;
    DockerFrames frames(false);
    for (std::size_t at = 0; at < text.size(); at += size) {
      ASSERT_TRUE(frames.feed(std::string_view(text).substr(at, size), heard.sink()));
    }
    EXPECT_EQ(heard.out, "hello\nbye\n");
    EXPECT_EQ(heard.err, std::string(300, 'e'));
  }
}

TEST(DockerFrames, NeighboursGoOnAsOnePiece) {
  std::string text;
  std::string want;
  for (int i = 0; i < 100; ++i) {
    text += multiplexed(1, "line\n");
    want += "line\n";
  }
  text += multiplexed(2, "error\n") + multiplexed(1, "last\n");
  std::vector<std::string> pieces;
  DockerFrames frames(false);
  ASSERT_TRUE(
      frames.feed(text, [&](OutputStream, std::string_view piece) { pieces.emplace_back(piece); }));
  EXPECT_EQ(pieces, (std::vector<std::string>{want, "error\n", "last\n"}));
}

TEST(DockerFrames, RefuseWhatIsNotMultiplexed) {
  Heard heard;
  EXPECT_FALSE(DockerFrames(false).feed("plain text of a terminal", heard.sink()));
  EXPECT_TRUE(DockerFrames(true).feed("plain text of a terminal", heard.sink()));
  EXPECT_EQ(heard.out, "plain text of a terminal");
}

class DockerStreamsTest : public testing::Test {
 protected:
  DockerStreamsTest() {
    client_
        ->on("GET /version", 200,
             R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12"})")
        .on("GET /v1.41/containers/c/json", 200, R"({"Id":"c","Config":{"Tty":false}})")
        .on("GET /v1.41/containers/t/json", 200, R"({"Id":"t","Config":{"Tty":true}})")
        .on("GET /v1.41/containers/x/json", 404, R"({"message":"No such container: x"})");
  }

  std::shared_ptr<ScriptedClient> client_ = std::make_shared<ScriptedClient>();
  DockerStreams streams_{std::make_shared<DockerClient>(client_)};
};

TEST_F(DockerStreamsTest, LogsAreAskedForAsWanted) {
  client_->pieces = {multiplexed(1, "one\n"), multiplexed(2, "two\n")};
  Heard heard;
  EXPECT_TRUE(streams_.logs("c", {true, 5, 1'500, true}, heard.sink(), {}));
  EXPECT_EQ(
      client_->calls.back(),
      "GET /v1.41/containers/c/logs?stdout=1&stderr=1&follow=1&timestamps=1&tail=5&since=1.500");
  EXPECT_EQ(heard.out, "one\n");
  EXPECT_EQ(heard.err, "two\n");
  client_->pieces = {"raw"};
  EXPECT_TRUE(streams_.logs("t", {}, heard.sink(), {}));
  EXPECT_EQ(client_->calls.back(),
            "GET /v1.41/containers/t/logs?stdout=1&stderr=1&follow=0&timestamps=0");
  EXPECT_EQ(heard.out, "one\nraw");
}

TEST_F(DockerStreamsTest, LogsSayWhatIsWrong) {
  Heard heard;
  const auto error_of = [&](const std::string& id) {
    const base::Status status = streams_.logs(id, {}, heard.sink(), {});
    return status ? base::Error{} : status.error();
  };
  EXPECT_EQ(error_of("x").code, ErrorCode::kNotFound);
  EXPECT_EQ(error_of("").code, ErrorCode::kClient);
  client_->pieces = {"not multiplexed"};
  EXPECT_EQ(error_of("c").code, ErrorCode::kProtocol);
  client_->on("GET /v1.41/containers/c/logs?stdout=1&stderr=1&follow=0&timestamps=0", 500,
              R"({"message":"configured logging driver does not support reading"})");
  EXPECT_EQ(error_of("c").code, ErrorCode::kClient);
  // A reader that leaves is no fault.
  std::stop_source stop;
  stop.request_stop();
  client_->hang = true;
  EXPECT_TRUE(streams_.logs("t", {true, {}, 0, false}, heard.sink(), stop.get_token()));
}

// A stream that a test has filled.
class CannedStream final : public ports::ByteStream {
 public:
  explicit CannedStream(std::deque<std::string> pieces, std::string& written)
      : pieces_(std::move(pieces)), written_(written) {}
  base::Result<bool> read(std::string& piece) override {
    if (pieces_.empty()) return false;
    piece = pieces_.front();
    pieces_.pop_front();
    return true;
  }
  base::Status write(std::string_view bytes) override {
    written_ += bytes;
    return {};
  }
  base::Status end_writing() override {
    written_ += "<end>";
    return {};
  }
  void close() override {}

 private:
  std::deque<std::string> pieces_;
  std::string& written_;
};

TEST_F(DockerStreamsTest, AProgramRunsOverAnUpgradedConnection) {
  std::string written;
  client_
      ->on("POST /v1.41/containers/c/exec", 201, R"({"Id":"e"})")
      // The engine is a moment behind the connection, at the beginning and at the end.
      .on("GET /v1.41/exec/e/json", 200, R"({"Running":true,"ExitCode":null})")
      .on("GET /v1.41/exec/e/json", 200, R"({"Running":false,"ExitCode":7})")
      .on("POST /v1.41/exec/e/resize?h=24&w=80", 500, R"({"message":"no such exec"})")
      .on("POST /v1.41/exec/e/resize?h=24&w=80", 200, "");
  client_->next_stream = std::make_unique<CannedStream>(
      std::deque<std::string>{multiplexed(1, "out"), multiplexed(2, "err")}, written);
  auto session = streams_.exec("c", {{"cat"}, true, false});
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(client_->calls.back(), "POST /v1.41/exec/e/start");
  Heard heard;
  EXPECT_TRUE((*session)->write("in"));
  EXPECT_TRUE((*session)->end_input());
  EXPECT_TRUE((*session)->resize(80, 24));
  EXPECT_TRUE((*session)->read(heard.sink()));
  EXPECT_EQ((*session)->exit_code().value_or(-1), 7);
  EXPECT_EQ(heard.out, "out");
  EXPECT_EQ(heard.err, "err");
  EXPECT_EQ(written, "in<end>");
}

TEST_F(DockerStreamsTest, AProgramThatCannotRunSaysWhy) {
  client_->on("POST /v1.41/containers/c/exec", 409, R"({"message":"Container c is not running"})")
      .on("POST /v1.41/containers/x/exec", 404, R"({"message":"No such container: x"})")
      .on("POST /v1.41/containers/t/exec", 201, R"({"Id":"e"})")
      .on("POST /v1.41/exec/e/start", 400, R"({"message":"bad"})");
  struct Row {
    const char* id;
    ErrorCode want;
  };
  for (const Row& row : {Row{"c", ErrorCode::kConflict}, Row{"x", ErrorCode::kNotFound},
                         Row{"t", ErrorCode::kClient}, Row{"", ErrorCode::kClient}}) {
    const auto session = streams_.exec(row.id, {{"cat"}, false, false});
    ASSERT_FALSE(session) << row.id;
    EXPECT_EQ(session.error().code, row.want) << session.error().message;
  }
}

}  // namespace
}  // namespace cotenant::adapters
