#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "http_fakes.h"
#include "net/http_server.h"
#include "net/ws_client.h"
#include "raw_socket.h"

namespace cotenant::net {
namespace {

using net_test::FunctionHandler;
using net_test::RawListener;
using net_test::RawSocket;
using net_test::RecordingListener;
using std::chrono::milliseconds;

constexpr std::string_view kUpgrade =
    "GET /agent/v1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// One masked frame as a client sends it (RFC 6455, 5.2), with a mask of zeros; payload up to 65535.
std::string client_frame(std::uint8_t first_byte, std::string_view payload) {
  std::string frame(1, static_cast<char>(first_byte));
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80 | payload.size());
  } else {
    frame += static_cast<char>(0x80 | 126);
    frame += static_cast<char>(payload.size() >> 8);
    frame += static_cast<char>(payload.size() & 0xff);
  }
  frame += std::string(4, '\0');
  return frame.append(payload);
}

// A server that gives each connection one listener, and the client side of one connection.
class WebSocketTest : public ::testing::Test {
 protected:
  void start(const HttpServerOptions& options = {}) {
    auto started = HttpServer::start(options, handler_);
    ASSERT_TRUE(started.has_value()) << started.error().message;
    server_ = std::move(*started);
    auto created = WebSocketClient::create();
    ASSERT_TRUE(created.has_value()) << created.error().message;
    client_ = std::move(*created);
  }

  std::string endpoint() const { return fmt::format("http://127.0.0.1:{}", server_->port()); }

  std::shared_ptr<ports::WebSocket> connect(const WebSocketOptions& options = {}) {
    auto socket = client_->connect(endpoint(), "/agent/v1", client_side_, options);
    if (!socket) {
      ADD_FAILURE() << socket.error().message;
      return nullptr;
    }
    return *socket;
  }

  // A raw peer that has been upgraded.
  RawSocket upgraded_raw_peer() {
    RawSocket raw = RawSocket::connect_tcp(server_->port());
    EXPECT_TRUE(raw.send(kUpgrade));
    EXPECT_TRUE(raw.read_until("\r\n\r\n"));
    EXPECT_EQ(raw.received().find("HTTP/1.1 101"), 0u) << raw.received();
    EXPECT_TRUE(server_side_->wait_open());
    raw.clear_received();
    return raw;
  }

  static void expect_closed_once(RecordingListener& listener, std::string_view reason) {
    ASSERT_TRUE(listener.wait_closed());
    EXPECT_EQ(listener.closed_count(), 1);
    EXPECT_FALSE(listener.out_of_order());
    EXPECT_NE(listener.reason().find(reason), std::string::npos) << listener.reason();
  }

  std::shared_ptr<RecordingListener> server_side_ = std::make_shared<RecordingListener>();
  std::shared_ptr<RecordingListener> client_side_ = std::make_shared<RecordingListener>();
  std::vector<ports::HttpRequest> upgrades_;
  FunctionHandler handler_{
      [](ports::HttpRequest, const ports::HttpResponder& respond) { respond({}); },
      [this](const ports::HttpRequest& request) -> std::shared_ptr<ports::WebSocketListener> {
        if (request.target != "/agent/v1") return nullptr;
        upgrades_.push_back(request);
        return server_side_;
      }};
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<WebSocketClient> client_;
};

TEST_F(WebSocketTest, EchoesBothWaysInOrder) {
  server_side_ =
      std::make_shared<RecordingListener>([](ports::WebSocket& socket, std::string_view text) {
        socket.send("s:" + std::string(text));
      });
  start();
  auto socket = client_->connect(endpoint(), "/agent/v1", client_side_, {}, {{"X-Token", "abc"}});
  ASSERT_TRUE(socket.has_value()) << socket.error().message;
  ASSERT_TRUE(server_side_->wait_open());
  server_side_->socket()->send("hello");
  ASSERT_TRUE(client_side_->wait_texts(1));
  for (int i = 0; i < 500; ++i) (*socket)->send(fmt::format("m{}", i));
  (*socket)->send("");
  (*socket)->send("caf\xc3\xa9");
  ASSERT_TRUE(client_side_->wait_texts(503));
  const std::vector<std::string> texts = client_side_->texts();
  EXPECT_EQ(texts[0], "hello");
  for (std::size_t i = 0; i < 500; ++i) ASSERT_EQ(texts[i + 1], fmt::format("s:m{}", i));
  EXPECT_EQ(texts[501], "s:");
  EXPECT_EQ(texts[502], "s:caf\xc3\xa9");
  ASSERT_EQ(upgrades_.size(), 1u);
  EXPECT_EQ(ports::header_value(upgrades_[0].headers, "X-Token"), "abc");
  EXPECT_EQ(server_->connections(), 1u);
  EXPECT_FALSE(client_side_->out_of_order());
  EXPECT_FALSE(server_side_->out_of_order());
}

// Takes binary frames; counts what it was told.
class BinaryListener final : public ports::WebSocketListener {
 public:
  void on_open(std::shared_ptr<ports::WebSocket> socket) override {
    monitor_.update([&] { socket_ = std::move(socket); });
  }
  void on_text(std::string_view text) override {
    monitor_.update([&] { texts_ += std::string(text) + ";"; });
  }
  bool on_binary(std::string_view data) override {
    monitor_.update([&] { data_ += data; });
    return true;
  }
  void on_drained() override {
    monitor_.update([&] { ++drained_; });
  }
  void on_closed(std::string_view) override {
    monitor_.update([&] { closed_ = true; });
  }

  std::shared_ptr<ports::WebSocket> socket() {
    monitor_.wait([&] { return socket_ != nullptr; });
    return monitor_.read([&] { return socket_; });
  }
  bool wait_data(std::size_t size) {
    return monitor_.wait([&] { return data_.size() >= size; });
  }
  bool wait_texts(const std::string& want) {
    return monitor_.wait([&] { return texts_ == want; });
  }
  bool wait_drained() {
    return monitor_.wait([&] { return drained_ > 0; });
  }
  bool wait_closed() {
    return monitor_.wait([&] { return closed_; });
  }
  std::string data() {
    return monitor_.read([&] { return data_; });
  }
  int drained() {
    return monitor_.read([&] { return drained_; });
  }

 private:
  net_test::Monitor monitor_;
  std::shared_ptr<ports::WebSocket> socket_;
  std::string texts_;
  std::string data_;
  int drained_ = 0;
  bool closed_ = false;
};

// A server whose sockets take binary frames, and a client's side of the same kind.
class BinaryWebSocketTest : public testing::Test {
 protected:
  BinaryWebSocketTest() {
    server_ = std::move(*HttpServer::start({}, handler_));
    client_ = std::move(*WebSocketClient::create());
  }
  std::shared_ptr<ports::WebSocket> connect(const WebSocketOptions& options = {}) {
    auto socket = client_->connect(fmt::format("http://127.0.0.1:{}", server_->port()), "/exec",
                                   client_side_, options);
    EXPECT_TRUE(socket) << socket.error().message;
    return *socket;
  }

  const std::shared_ptr<BinaryListener> server_side_ = std::make_shared<BinaryListener>();
  const std::shared_ptr<BinaryListener> client_side_ = std::make_shared<BinaryListener>();
  FunctionHandler handler_{
      [](ports::HttpRequest, const ports::HttpResponder& respond) { respond({}); },
      [this](const ports::HttpRequest&) { return server_side_; }};
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<WebSocketClient> client_;
};

TEST_F(BinaryWebSocketTest, BytesOfAllKindsBesideText) {
  const auto socket = connect();
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  socket->send("one");
  socket->send_binary(all);
  socket->send("two");
  socket->send_binary("");
  ASSERT_TRUE(server_side_->wait_texts("one;two;"));
  ASSERT_TRUE(server_side_->wait_data(256));
  EXPECT_EQ(server_side_->data(), all);
  server_side_->socket()->send_binary(all);
  EXPECT_TRUE(client_side_->wait_data(256));
}

TEST_F(BinaryWebSocketTest, AReaderThatPausesHoldsTheSenderBackAndNothingIsLost) {
  const auto socket = connect();
  const auto reader = server_side_->socket();
  reader->set_reading(false);
  const std::string piece(64 * 1024, 'x');
  std::size_t sent = 0;
  // One frame may still arrive; then the sockets fill, and then the queue.
  while (socket->queued_bytes() < ports::kStreamHighWaterBytes) {
    socket->send_binary(piece);
    sent += piece.size();
  }
  EXPECT_LE(server_side_->data().size(), piece.size());
  EXPECT_EQ(client_side_->drained(), 0);
  reader->set_reading(true);
  EXPECT_TRUE(client_side_->wait_drained());
  EXPECT_TRUE(server_side_->wait_data(sent));
  EXPECT_EQ(server_side_->data().size(), sent);
}

TEST_F(BinaryWebSocketTest, WhoPausesThinksNobodyDeadButSeesWhoIsGone) {
  WebSocketOptions options;
  options.ping_interval = milliseconds(20);
  options.dead_after = milliseconds(60);
  const auto socket = connect(options);
  socket->set_reading(false);
  server_side_->socket()->send("held");
  // Far more pings than dead_after has room for: each is a write of ours that succeeds.
  server_side_->socket()->send("back");
  socket->set_reading(true);
  EXPECT_TRUE(client_side_->wait_texts("held;back;"));
  socket->set_reading(false);
  server_->stop();
  EXPECT_TRUE(client_side_->wait_closed());
}

TEST_F(BinaryWebSocketTest, CloseComesThroughAPause) {
  const auto socket = connect();
  socket->set_reading(false);
  socket->close("done");
  EXPECT_TRUE(client_side_->wait_closed());
  EXPECT_TRUE(server_side_->wait_closed());
}

TEST_F(WebSocketTest, FramesUpToTheLimit) {
  server_side_ = std::make_shared<RecordingListener>(
      [](ports::WebSocket& socket, std::string_view text) { socket.send(std::string(text)); });
  start();
  const auto socket = connect();
  ASSERT_TRUE(socket);
  const std::string large(base::limits::kAgentFrameBytes, 'x');
  socket->send(large);
  ASSERT_TRUE(client_side_->wait_texts(1)) << client_side_->reason();
  EXPECT_TRUE(client_side_->texts()[0] == large);
}

TEST_F(WebSocketTest, OversizedOutgoingMessageClosesWithAReason) {
  start();
  WebSocketOptions options;
  options.frame_bytes = 1000;
  const auto socket = connect(options);
  ASSERT_TRUE(socket);
  socket->send(std::string(1001, 'x'));
  expect_closed_once(*client_side_, "an outgoing message has 1001 bytes, the limit is 1000");
  expect_closed_once(*server_side_,
                     "closed by the peer (1009): an outgoing message has 1001 bytes");
  EXPECT_TRUE(server_side_->texts().empty());
}

TEST_F(WebSocketTest, OversizedIncomingMessageCloses) {
  HttpServerOptions options;
  options.websocket.frame_bytes = 1000;
  start(options);
  const auto socket = connect();
  ASSERT_TRUE(socket);
  socket->send(std::string(1000, 'x'));
  ASSERT_TRUE(server_side_->wait_texts(1));
  socket->send(std::string(1001, 'x'));
  expect_closed_once(*server_side_, "the peer sent a message of more than 1000 bytes");
  expect_closed_once(*client_side_, "closed by the peer (1009)");
  EXPECT_EQ(server_side_->texts().size(), 1u);
}

TEST_F(WebSocketTest, RawPeersThatBreakTheProtocol) {
  struct Case {
    std::string name;
    std::string sent;
    std::string want_reason;
    std::string want_close_code;  // two bytes; empty: no close frame is due
  };
  const std::vector<Case> cases = {
      {"binary", client_frame(0x82, "abc"), "only text frames are accepted", "\x03\xeb"},
      {"bad UTF-8", client_frame(0x81, "\xff\xfe"), "", "\x03\xef"},
      {"unknown opcode", client_frame(0x83, "abc"), "", "\x03\xea"},
      {"not masked", std::string("\x81\x03") + "abc", "", "\x03\xea"},
      {"fragments beyond the limit",
       client_frame(0x01, std::string(600, 'a')) + client_frame(0x80, std::string(600, 'a')),
       "more than 1000 bytes", "\x03\xf1"},
      {"closes",
       client_frame(0x88,
                    "\x03\xe8"
                    "bye"),
       "closed by the peer (1000): bye", "\x03\xe8"},
      {"vanishes", "", "the peer closed the connection", ""},
  };
  HttpServerOptions options;
  options.websocket.frame_bytes = 1000;
  start(options);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    server_side_ = std::make_shared<RecordingListener>();
    RawSocket raw = upgraded_raw_peer();
    ASSERT_TRUE(raw.send(c.sent));
    if (!c.want_close_code.empty()) {
      ASSERT_TRUE(raw.read_until(c.want_close_code));
      EXPECT_EQ(raw.received()[0], '\x88') << "a close frame";
      // Completes the closing handshake, which the server may wait for.
      raw.send(client_frame(0x88, c.want_close_code));
    }
    raw.finish_sending();
    expect_closed_once(*server_side_, c.want_reason);
    EXPECT_TRUE(server_side_->texts().empty());
    EXPECT_TRUE(raw.read_to_end().has_value());
  }
  EXPECT_TRUE(net_test::poll_until([&] { return server_->connections() == 0; }));
}

TEST_F(WebSocketTest, FragmentsArriveAsOneMessage) {
  start();
  RawSocket raw = upgraded_raw_peer();
  // With a ping in between, which is answered.
  ASSERT_TRUE(raw.send(client_frame(0x01, "one ") + client_frame(0x89, "p") +
                       client_frame(0x00, "two ") + client_frame(0x80, "three")));
  ASSERT_TRUE(server_side_->wait_texts(1));
  EXPECT_EQ(server_side_->texts()[0], "one two three");
  EXPECT_TRUE(raw.read_until("\x8a\x01p"));
}

// In Beast the read that must refuse the frame's end and the close that has been sent then wait for
// each other: the session must get rid of both, or the server could not stop.
TEST_F(WebSocketTest, BadFrameWhileClosing) {
  HttpServerOptions options;
  options.websocket.close_timeout = milliseconds(100);
  start(options);
  RawSocket raw = upgraded_raw_peer();
  const std::string frame = client_frame(0x81, "12345678\xff\xfe");
  // The answer to the ping says that the server has read this far.
  ASSERT_TRUE(raw.send(client_frame(0x89, "p") + frame.substr(0, frame.size() - 4)));
  ASSERT_TRUE(raw.read_until("\x8a\x01p"));
  server_side_->socket()->close("enough");
  ASSERT_TRUE(raw.read_until("enough"));
  ASSERT_TRUE(raw.send(frame.substr(frame.size() - 4)));
  expect_closed_once(*server_side_, "enough");
  EXPECT_TRUE(raw.read_to_end().has_value());
  server_.reset();  // joins
}

// The server waits for the end of the connection, in vain.
TEST_F(WebSocketTest, PeerThatClosesAndThenKeepsTheConnection) {
  HttpServerOptions options;
  options.websocket.dead_after = milliseconds(200);
  start(options);
  RawSocket raw = upgraded_raw_peer();
  ASSERT_TRUE(raw.send(client_frame(0x88,
                                    "\x03\xe8"
                                    "bye")));
  ASSERT_TRUE(raw.read_until("\x03\xe8"));
  expect_closed_once(*server_side_, "");
  EXPECT_TRUE(raw.read_to_end().has_value());
  server_.reset();
}

TEST_F(WebSocketTest, BadHandshakeGetsNoListenerCall) {
  start();
  RawSocket raw = RawSocket::connect_tcp(server_->port());
  ASSERT_TRUE(
      raw.send("GET /agent/v1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
               "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"));
  const auto answer = raw.read_to_end();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->find("HTTP/1.1 400"), 0u) << *answer;
  EXPECT_TRUE(net_test::poll_until([&] { return server_->connections() == 0; }));
  EXPECT_EQ(server_side_->closed_count(), 0);
}

TEST_F(WebSocketTest, CloseSendsWhatIsQueuedAndThenTheReason) {
  start();
  const auto socket = connect();
  ASSERT_TRUE(socket);
  const std::string large(1 << 20, 'x');
  for (int i = 0; i < 5; ++i) socket->send(large);
  socket->close("epoch 2 took over");
  socket->send("after close");
  socket->close("again");
  expect_closed_once(*server_side_, "closed by the peer (1000): epoch 2 took over");
  expect_closed_once(*client_side_, "epoch 2 took over");
  EXPECT_EQ(server_side_->texts().size(), 5u);
  EXPECT_TRUE(net_test::poll_until([&] { return server_->connections() == 0; }));
}

TEST_F(WebSocketTest, LongReasonIsCutBetweenCharacters) {
  start();
  const auto socket = connect();
  ASSERT_TRUE(socket);
  std::string reason = "a";
  for (int i = 0; i < 100; ++i) reason += "\xc3\xa9";  // the 120th byte is the first half of one
  socket->close(reason);
  expect_closed_once(*server_side_, "closed by the peer (1000): " + reason.substr(0, 119));
  EXPECT_EQ(server_side_->reason().size(), std::string("closed by the peer (1000): ").size() + 119);
  expect_closed_once(*client_side_, reason);
}

TEST_F(WebSocketTest, BothSidesMayCloseAtOnceFromManyThreads) {
  start();
  for (int round = 0; round < 20; ++round) {
    server_side_ = std::make_shared<RecordingListener>();
    client_side_ = std::make_shared<RecordingListener>();
    const auto socket = connect();
    ASSERT_TRUE(socket);
    ASSERT_TRUE(server_side_->wait_open());
    const auto other = server_side_->socket();
    std::vector<std::thread> threads;
    for (const auto& side : {socket, other}) {
      for (int t = 0; t < 2; ++t) {
        threads.emplace_back([side] {
          for (int i = 0; i < 20; ++i) side->send("text");
          side->close("done");
          side->send("more");
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
    expect_closed_once(*client_side_, "");
    expect_closed_once(*server_side_, "");
  }
}

TEST_F(WebSocketTest, FullQueueClosesInsteadOfDropping) {
  HttpServerOptions options;
  options.websocket.queue_frames = 100;
  options.websocket.close_timeout = milliseconds(100);
  start(options);
  RawSocket raw = upgraded_raw_peer();  // reads nothing
  const std::string text(100000, 'x');
  ASSERT_TRUE(net_test::poll_until([&] {
    server_side_->socket()->send(text);
    return server_side_->closed_count() > 0;
  }));
  expect_closed_once(*server_side_, "the peer reads too slowly");
}

TEST_F(WebSocketTest, QueueIsBoundedInBytesToo) {
  HttpServerOptions options;
  options.websocket.queue_bytes = 150000;
  options.websocket.close_timeout = milliseconds(100);
  start(options);
  RawSocket raw = upgraded_raw_peer();
  const std::string text(100000, 'x');
  ASSERT_TRUE(net_test::poll_until([&] {
    server_side_->socket()->send(text);
    return server_side_->closed_count() > 0;
  }));
  expect_closed_once(*server_side_, "the peer reads too slowly");
}

TEST_F(WebSocketTest, ServerPingsAndGivesUpADeadPeer) {
  HttpServerOptions options;
  options.websocket.ping_interval = milliseconds(20);
  options.websocket.dead_after = milliseconds(200);
  start(options);
  RawSocket raw = upgraded_raw_peer();
  ASSERT_TRUE(raw.read_until(std::string("\x89\x00", 2))) << "a ping";
  // Never answered.
  expect_closed_once(*server_side_, "dead: nothing was received for 200 ms");
  EXPECT_TRUE(raw.read_to_end().has_value());
}

TEST_F(WebSocketTest, PongsKeepAQuietConnectionAlive) {
  HttpServerOptions options;
  options.websocket.ping_interval = milliseconds(50);
  options.websocket.dead_after = milliseconds(2000);
  start(options);
  RawSocket raw = upgraded_raw_peer();
  const auto began = std::chrono::steady_clock::now();
  // Longer than a silent peer would live.
  while (std::chrono::steady_clock::now() - began < milliseconds(3000)) {
    raw.clear_received();
    ASSERT_TRUE(raw.read_until(std::string("\x89\x00", 2))) << server_side_->reason();
    ASSERT_TRUE(raw.send(client_frame(0x8a, "")));
  }
  EXPECT_EQ(server_side_->closed_count(), 0);
}

TEST_F(WebSocketTest, ClientGivesUpADeadServer) {
  start();
  RawListener listener;
  // The handshake's key is random, so a real server computes the answer: this proxy forwards the
  // handshake and then falls silent.
  std::thread proxy([&] {
    RawSocket near = listener.accept();
    if (!near.is_open() || !near.read_until("\r\n\r\n")) return;
    RawSocket far = RawSocket::connect_tcp(server_->port());
    far.send(near.received());
    far.read_until("\r\n\r\n");
    near.send(far.received());
    near.read_to_end();
  });
  WebSocketOptions options;
  options.ping_interval = milliseconds(20);
  options.dead_after = milliseconds(200);
  const auto socket = client_->connect(fmt::format("http://127.0.0.1:{}", listener.port()),
                                       "/agent/v1", client_side_, options);
  EXPECT_TRUE(socket.has_value());
  if (socket) expect_closed_once(*client_side_, "dead: nothing was received for 200 ms");
  proxy.join();
}

TEST_F(WebSocketTest, ConnectErrors) {
  start();
  RawListener silent;
  std::uint16_t free_port = 0;
  {
    const RawListener listener;
    free_port = listener.port();
  }
  struct Case {
    std::string name;
    std::string endpoint;
    std::string target;
    base::ErrorCode code;
    std::string want;
  };
  const auto at = [](std::uint16_t port) { return fmt::format("http://127.0.0.1:{}", port); };
  const std::vector<Case> cases = {
      {"bad endpoint", "ws://host", "/agent/v1", base::ErrorCode::kInvalidParameter,
       "want http://"},
      {"bad target", endpoint(), "agent v1", base::ErrorCode::kInvalidParameter, "target"},
      {"nobody listens", at(free_port), "/agent/v1", base::ErrorCode::kUnavailable, "refused"},
      {"refused", endpoint(), "/elsewhere", base::ErrorCode::kProtocol,
       "/elsewhere: the server answered 404 to the upgrade: no WebSocket at this path"},
      {"silent", at(silent.port()), "/agent/v1", base::ErrorCode::kTimeout, "no handshake in time"},
  };
  WebSocketOptions options;
  options.handshake_timeout = milliseconds(200);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto socket = client_->connect(c.endpoint, c.target, client_side_, options);
    ASSERT_FALSE(socket.has_value());
    EXPECT_EQ(socket.error().code, c.code) << socket.error().message;
    EXPECT_NE(socket.error().message.find(c.want), std::string::npos) << socket.error().message;
  }
  EXPECT_EQ(client_side_->closed_count(), 0);
  EXPECT_EQ(client_side_->socket(), nullptr);
}

TEST_F(WebSocketTest, ConnectStops) {
  start();
  RawListener silent;
  std::stop_source stop;
  std::thread stopper([&] {
    RawSocket near = silent.accept();
    near.read_until("\r\n\r\n");
    stop.request_stop();
    near.read_to_end();
  });
  WebSocketOptions options;
  options.handshake_timeout = milliseconds(60000);
  const auto socket = client_->connect(fmt::format("http://127.0.0.1:{}", silent.port()),
                                       "/agent/v1", client_side_, options, {}, stop.get_token());
  stopper.join();
  ASSERT_FALSE(socket.has_value());
  EXPECT_EQ(socket.error().code, base::ErrorCode::kUnavailable) << socket.error().message;
}

TEST_F(WebSocketTest, ServerStopClosesWithAReason) {
  start();
  const auto socket = connect();
  ASSERT_TRUE(socket);
  ASSERT_TRUE(server_side_->wait_open());  // the server may be a step behind the client
  server_side_ = std::make_shared<RecordingListener>();
  RawSocket mute = upgraded_raw_peer();  // never answers the close frame
  const auto began = std::chrono::steady_clock::now();
  server_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, net_test::kPatience);
  expect_closed_once(*client_side_, "closed by the peer (1001)");
  expect_closed_once(*server_side_, "this side is stopping");
  socket->send("nobody there");
  const auto handle = server_side_->socket();
  server_.reset();
  handle->send("the server is gone");
  handle->close("the server is gone");
}

TEST_F(WebSocketTest, ClientDestructionClosesAndJoins) {
  start();
  const auto socket = connect();
  ASSERT_TRUE(socket);
  ASSERT_TRUE(server_side_->wait_open());
  client_.reset();
  EXPECT_EQ(client_side_->closed_count(), 1);
  expect_closed_once(*client_side_, "this side is stopping");
  expect_closed_once(*server_side_, "closed by the peer (1001)");
  socket->send("nobody there");
  socket->close("nobody there");
}

TEST_F(WebSocketTest, ListenerThatThrowsLosesItsSocketOnly) {
  server_side_ =
      std::make_shared<RecordingListener>([](ports::WebSocket&, std::string_view) { throw 1; });
  start();
  auto socket = connect();
  ASSERT_TRUE(socket);
  socket->send("x");
  ASSERT_TRUE(client_side_->wait_closed());
  EXPECT_NE(client_side_->reason().find("closed by the peer (1011): the listener failed"),
            std::string::npos)
      << client_side_->reason();
  server_side_ = std::make_shared<RecordingListener>();
  client_side_ = std::make_shared<RecordingListener>();
  socket = connect();
  ASSERT_TRUE(socket);
  socket->send("y");
  EXPECT_TRUE(server_side_->wait_texts(1));
}

TEST_F(WebSocketTest, ManySocketsOnOneClient) {
  start();
  constexpr std::size_t kSockets = 20;
  std::vector<std::shared_ptr<RecordingListener>> servers;
  std::vector<std::shared_ptr<ports::WebSocket>> sockets;
  for (std::size_t i = 0; i < kSockets; ++i) {
    server_side_ = std::make_shared<RecordingListener>();
    servers.push_back(server_side_);
    sockets.push_back(connect());
    client_side_ = std::make_shared<RecordingListener>();
    ASSERT_TRUE(sockets.back());
  }
  for (std::size_t i = 0; i < kSockets; ++i) sockets[i]->send(fmt::format("{}", i));
  for (std::size_t i = 0; i < kSockets; ++i) {
    ASSERT_TRUE(servers[i]->wait_texts(1));
    EXPECT_EQ(servers[i]->texts()[0], fmt::format("{}", i));
  }
}

}  // namespace
}  // namespace cotenant::net
