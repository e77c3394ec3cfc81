// Answers that go out piece by piece.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "http_fakes.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "raw_socket.h"

namespace cotenant::net {
namespace {

using net_test::FunctionHandler;
using net_test::Monitor;
using net_test::RawSocket;

// Writes down what it is told.
class RecordingBody final : public ports::HttpBodyListener {
 public:
  void on_open(std::shared_ptr<ports::HttpBodyWriter> writer) override {
    monitor_.update([&] { writer_ = std::move(writer); });
  }
  void on_drained() override {
    monitor_.update([&] { ++drained_; });
  }
  void on_closed(std::string_view reason) override {
    monitor_.update([&] { reasons_.emplace_back(reason); });
  }

  std::shared_ptr<ports::HttpBodyWriter> writer() {
    monitor_.wait([&] { return writer_ != nullptr; });
    return monitor_.read([&] { return writer_; });
  }
  void drop_writer() {
    std::shared_ptr<ports::HttpBodyWriter> dropped;
    monitor_.update([&] { dropped = std::exchange(writer_, nullptr); });
  }
  bool wait_drained() {
    return monitor_.wait([&] { return drained_ > 0; });
  }
  bool is_closed() {
    return monitor_.read([&] { return !reasons_.empty(); });
  }
  int drained() {
    return monitor_.read([&] { return drained_; });
  }
  // The reasons of all on_closed() calls, once there are that many.
  std::vector<std::string> reasons(std::size_t count = 1) {
    monitor_.wait([&] { return reasons_.size() >= count; });
    return monitor_.read([&] { return reasons_; });
  }

 private:
  Monitor monitor_;
  std::shared_ptr<ports::HttpBodyWriter> writer_;
  int drained_ = 0;
  std::vector<std::string> reasons_;
};

class HttpStreamTest : public testing::Test {
 protected:
  void start(HttpServerOptions options = {}) {
    auto server = HttpServer::start(options, handler_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  RawSocket open(const std::string& method = "GET", const std::string& version = "HTTP/1.1") {
    RawSocket client = RawSocket::connect_tcp(server_->port());
    EXPECT_TRUE(client.send(fmt::format("{} /logs {}\r\nHost: h\r\n\r\n", method, version)));
    return client;
  }

  const std::shared_ptr<RecordingBody> body_ = std::make_shared<RecordingBody>();
  FunctionHandler handler_{[this](ports::HttpRequest, const ports::HttpResponder& respond) {
    respond({200, {{"Content-Type", "text/plain"}}, "first ", body_});
  }};
  std::unique_ptr<HttpServer> server_;
};

using Reasons = std::vector<std::string>;

TEST_F(HttpStreamTest, ChunksGoOutAtOnceAndTheEndIsMarked) {
  start();
  RawSocket client = open();
  ASSERT_TRUE(client.read_until("6\r\nfirst \r\n")) << client.received();
  EXPECT_NE(client.received().find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_NE(client.received().find("Connection: close"), std::string::npos);
  EXPECT_EQ(client.received().find("Content-Length"), std::string::npos);
  const auto writer = body_->writer();
  writer->write("one");
  ASSERT_TRUE(client.read_until("3\r\none\r\n"));
  writer->write("");  // would end the body if it went out as a chunk
  writer->write(std::string(20, 'x'));
  ASSERT_TRUE(client.read_until("14\r\nxxxxxxxxxxxxxxxxxxxx\r\n"));
  writer->finish();
  writer->write("too late");
  const auto all = client.read_to_end();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->substr(all->size() - 7), "\r\n0\r\n\r\n");
  EXPECT_EQ(body_->reasons(), Reasons{"complete"});
}

TEST_F(HttpStreamTest, Http10GetsBareBytesUntilTheEnd) {
  start();
  RawSocket client = open("GET", "HTTP/1.0");
  body_->writer()->write("second");
  body_->writer()->finish();
  const auto all = client.read_to_end();
  ASSERT_TRUE(all);
  EXPECT_NE(all->find("\r\n\r\nfirst second"), std::string::npos) << *all;
  EXPECT_EQ(all->find("chunked"), std::string::npos) << *all;
}

TEST_F(HttpStreamTest, HeadHasNoBody) {
  start();
  RawSocket client = open("HEAD");
  EXPECT_TRUE(client.read_until("200 OK"));
  EXPECT_EQ(body_->reasons(), Reasons{"this answer has no body"});
}

TEST_F(HttpStreamTest, OurOwnClientReadsItAndSeesWhenItBreaksOff) {
  start();
  const auto client = make_http_client(fmt::format("http://127.0.0.1:{}", server_->port()));
  ASSERT_TRUE(client);
  const std::vector<std::function<void()>> ends = {
      [&] { body_->writer()->finish(); },
      [&] { body_->writer()->abort("the agent has gone"); },
  };
  for (std::size_t i = 0; i < ends.size(); ++i) {
    std::string seen;
    const auto outcome = (*client)->stream(
        {},
        [&](std::string_view piece) {
          seen += piece;
          if (seen == "first ") body_->writer()->write("second");
          if (seen == "first second") ends[i]();
        },
        std::stop_token());
    EXPECT_EQ(seen, "first second");
    EXPECT_EQ(outcome.has_value(), i == 0);
    body_->drop_writer();
  }
  EXPECT_EQ(body_->reasons(2), (Reasons{"complete", "the agent has gone"}));
}

TEST_F(HttpStreamTest, AProducerThatIsGoneBreaksItOff) {
  start();
  RawSocket client = open();
  body_->writer()->write("half");
  body_->drop_writer();
  client.read_to_end();
  EXPECT_EQ(client.received().find("0\r\n\r\n"), std::string::npos) << client.received();
  EXPECT_EQ(body_->reasons(), Reasons{"its producer is gone"});
}

TEST_F(HttpStreamTest, APeerThatLeavesIsNoticedThoughNothingIsWritten) {
  start();
  RawSocket client = open();
  ASSERT_TRUE(client.read_until("first "));
  client.close();
  EXPECT_EQ(body_->reasons(), Reasons{"the peer has left"});
  body_->writer()->write("into the void");
}

TEST_F(HttpStreamTest, ASlowReaderHoldsTheProducerBack) {
  start();
  RawSocket client = open();
  const auto writer = body_->writer();
  const std::string piece(64 * 1024, '#');
  std::size_t sent = 0;
  // More than the sockets hold, so that the queue really fills.
  while (writer->queued_bytes() < ports::kStreamHighWaterBytes) {
    writer->write(piece);
    sent += piece.size();
  }
  std::size_t seen = 0;
  const auto take = [&] {
    seen += static_cast<std::size_t>(
        std::count(client.received().begin(), client.received().end(), '#'));
    client.clear_received();
  };
  while (body_->drained() == 0) {
    ASSERT_TRUE(client.read_until("#")) << "nothing more comes";
    take();
  }
  writer->finish();
  ASSERT_TRUE(client.read_to_end());
  take();
  EXPECT_EQ(seen, sent);
}

TEST_F(HttpStreamTest, AProducerThatWaitsForNobodyLosesItsPeer) {
  start();
  RawSocket client = open();
  const auto writer = body_->writer();
  const std::string piece(256 * 1024, 'x');
  for (int i = 0; i < 1000; ++i) writer->write(piece);
  ASSERT_EQ(body_->reasons().size(), 1u);
  EXPECT_NE(body_->reasons()[0].find("reads too slowly"), std::string::npos) << body_->reasons()[0];
}

TEST_F(HttpStreamTest, AReaderThatReadsNothingIsGivenUp) {
  HttpServerOptions options;
  options.write_timeout = std::chrono::milliseconds(50);
  start(options);
  RawSocket client = open();
  const auto writer = body_->writer();
  const std::string piece(64 * 1024, 'x');
  // Until the sockets are full and nothing goes out any more.
  EXPECT_TRUE(net_test::poll_until([&] {
    if (writer->queued_bytes() < ports::kStreamHighWaterBytes) writer->write(piece);
    return body_->is_closed();
  }));
  EXPECT_EQ(body_->reasons().size(), 1u);
}

TEST_F(HttpStreamTest, StopEndsIt) {
  start();
  RawSocket client = open();
  ASSERT_TRUE(client.read_until("first "));
  const auto writer = body_->writer();
  server_->stop();
  EXPECT_EQ(body_->reasons(), Reasons{"this server is stopping"});
  writer->write("nobody");  // does nothing
  writer->finish();
}

TEST_F(HttpStreamTest, UnixSocketTellsWhoCalls) {
  const std::string folder = testing::TempDir() + fmt::format("cotenant-unix-{}", ::getpid());
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/api.sock";
  Monitor monitor;
  std::vector<ports::HttpPeer> peers;
  FunctionHandler handler([&](ports::HttpRequest request, const ports::HttpResponder& respond) {
    monitor.update([&] { peers.push_back(request.peer); });
    respond({});
  });
  HttpServerOptions options;
  options.unix_socket = path;
  const auto client = make_http_client("unix://" + path);
  {
    auto server = HttpServer::start(options, handler);
    ASSERT_TRUE(server) << server.error().message;
    struct stat seen {};
    ASSERT_EQ(::stat(path.c_str(), &seen), 0);
    EXPECT_EQ(seen.st_mode & 0777u, 0600u);
    ASSERT_TRUE((*client)->send({}, net_test::kPatience));
    const auto tcp = make_http_client(fmt::format("http://127.0.0.1:{}", (*server)->port()));
    ASSERT_TRUE((*tcp)->send({}, net_test::kPatience));
    ASSERT_EQ(peers.size(), 2u);
    EXPECT_EQ(peers[0].address, "unix");
    EXPECT_EQ(peers[0].user, ::getuid());
    EXPECT_EQ(peers[1].address, "127.0.0.1");
    EXPECT_FALSE(peers[1].user);

    const auto second = HttpServer::start(options, handler);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another process listens there"), std::string::npos);
    EXPECT_TRUE((*client)->send({}, net_test::kPatience)) << "the first one still serves";
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "removed at the end";

  // A crash leaves the file behind.
  const int stale = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(stale, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(stale);
  {
    auto server = HttpServer::start(options, handler);
    ASSERT_TRUE(server) << server.error().message;
    EXPECT_TRUE((*client)->send({}, net_test::kPatience));
  }
  // What is no socket is never removed.
  { std::ofstream(path) << "mine"; }
  const auto third = HttpServer::start(options, handler);
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().message.find("no socket"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cotenant::net
