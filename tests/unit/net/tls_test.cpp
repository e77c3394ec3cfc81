// TLS on both sides, for HTTP, streams and WebSockets.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "http_fakes.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/ws_client.h"
#include "raw_socket.h"
#include "test_certificate.h"

namespace cotenant::net {
namespace {

using net_test::FunctionHandler;
using net_test::RawSocket;
using net_test::RecordingListener;
using net_test::TestCertificate;

class TlsTest : public testing::Test {
 protected:
  void start(const TestCertificate& certificate, HttpServerOptions options = {}) {
    auto tls = load_server_tls(certificate.certificate(), certificate.key());
    ASSERT_TRUE(tls) << tls.error().message;
    options.tls = *tls;
    auto server = HttpServer::start(options, handler_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::string endpoint(const std::string& host = "127.0.0.1") const {
    return fmt::format("https://{}:{}", host, server_->port());
  }
  base::Result<ports::HttpResponse> get(const std::string& host, const std::string& ca,
                                        const std::string& body = "") {
    HttpClientOptions options;
    options.ca_certificate = ca;
    auto client = make_http_client(endpoint(host), options);
    if (!client) return base::fail(client.error());
    return (*client)->send({"POST", "/", {}, body, {}}, net_test::kPatience);
  }

  const TestCertificate good_{"IP:127.0.0.1,DNS:localhost"};
  const std::shared_ptr<RecordingListener> server_side_ =
      std::make_shared<RecordingListener>([](ports::WebSocket& socket, std::string_view text) {
        socket.send("echo " + std::string(text));
      });
  FunctionHandler handler_{
      [](const ports::HttpRequest& request, const ports::HttpResponder& respond) {
        respond({200, {}, fmt::format("{}{}", request.peer.is_encrypted, request.body), nullptr});
      },
      [this](const ports::HttpRequest&) { return server_side_; }};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(TlsTest, RequestsOfAllSizes) {
  start(good_);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{20000}, std::size_t{1000000}}) {
    const auto response = get("127.0.0.1", good_.certificate(), std::string(size, 'x'));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, "true" + std::string(size, 'x'));
  }
  EXPECT_TRUE(get("localhost", good_.certificate())) << "by name";
}

TEST_F(TlsTest, CertificatesThatAreNotAccepted) {
  const TestCertificate other("IP:127.0.0.1");
  const TestCertificate wrong_name("DNS:elsewhere.example");
  const TestCertificate expired("IP:127.0.0.1", -7200, -3600);
  const TestCertificate early("IP:127.0.0.1", 3600, 7200);
  struct Case {
    const TestCertificate& shown;
    std::string trusted;
    std::string want;
  };
  const Case cases[] = {
      {good_, other.certificate(), "self-signed certificate"},
      {good_, "", "self-signed certificate"},
      {wrong_name, wrong_name.certificate(), "not accepted"},
      {expired, expired.certificate(), "expired"},
      {early, early.certificate(), "not yet valid"},
  };
  for (const Case& row : cases) {
    start(row.shown);
    const auto response = get("127.0.0.1", row.trusted);
    ASSERT_FALSE(response) << row.want;
    EXPECT_EQ(response.error().code, base::ErrorCode::kUnavailable);
    EXPECT_NE(response.error().message.find(row.want), std::string::npos)
        << response.error().message;
    auto client = WebSocketClient::create(row.trusted);
    ASSERT_TRUE(client);
    const auto socket =
        (*client)->connect(endpoint(), "/agent/v1", std::make_shared<RecordingListener>());
    ASSERT_FALSE(socket);
    EXPECT_NE(socket.error().message.find(row.want), std::string::npos) << socket.error().message;
  }
}

TEST_F(TlsTest, WebSockets) {
  start(good_);
  auto client = WebSocketClient::create(good_.certificate());
  ASSERT_TRUE(client) << client.error().message;
  const auto listener = std::make_shared<RecordingListener>();
  const auto socket = (*client)->connect(endpoint(), "/agent/v1", listener);
  ASSERT_TRUE(socket) << socket.error().message;
  const std::string large(300000, 'y');
  (*socket)->send("small");
  (*socket)->send(large);
  ASSERT_TRUE(listener->wait_texts(2));
  EXPECT_EQ(listener->texts()[0], "echo small");
  EXPECT_TRUE(listener->texts()[1] == "echo " + large);
  (*socket)->close("done");
  ASSERT_TRUE(server_side_->wait_closed());
  EXPECT_NE(server_side_->reason().find("done"), std::string::npos) << server_side_->reason();
  EXPECT_TRUE(listener->wait_closed());
}

TEST_F(TlsTest, StopClosesWebSockets) {
  start(good_);
  auto client = WebSocketClient::create(good_.certificate());
  const auto listener = std::make_shared<RecordingListener>();
  ASSERT_TRUE((*client)->connect(endpoint(), "/agent/v1", listener));
  ASSERT_TRUE(server_side_->wait_open());
  server_->stop();
  ASSERT_TRUE(listener->wait_closed());
  EXPECT_NE(listener->reason().find("this side is stopping"), std::string::npos)
      << listener->reason();
}

TEST_F(TlsTest, PeersThatSpeakNoTls) {
  start(good_);
  // Plain HTTP and nonsense: each is closed, and the server lives.
  for (const char* bytes : {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", "nonsense that is no record"}) {
    RawSocket raw = RawSocket::connect_tcp(server_->port());
    ASSERT_TRUE(raw.send(bytes));
    EXPECT_TRUE(raw.read_to_end()) << bytes;
    EXPECT_EQ(raw.received().find("HTTP/1.1 200"), std::string::npos);
  }
  EXPECT_TRUE(net_test::poll_until([&] { return server_->connections() == 0; }));
  EXPECT_TRUE(get("127.0.0.1", good_.certificate()));
}

TEST_F(TlsTest, AServerThatSpeaksNoTls) {
  auto server = HttpServer::start({}, handler_);
  ASSERT_TRUE(server);
  server_ = std::move(*server);
  const auto response = get("127.0.0.1", good_.certificate());
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().message.find("TLS"), std::string::npos) << response.error().message;
}

TEST(TlsFilesTest, RefusedByName) {
  const TestCertificate one("IP:127.0.0.1");
  const TestCertificate two("IP:127.0.0.1");
  struct Case {
    std::string certificate;
    std::string key;
    std::string want;
  };
  const Case cases[] = {
      {"/nowhere/certificate.pem", one.key(), "TLS certificate /nowhere/certificate.pem"},
      {one.key(), one.key(), "TLS certificate " + one.key()},
      {one.certificate(), "/nowhere/key.pem", "TLS key /nowhere/key.pem"},
      {one.certificate(), one.certificate(), "TLS key " + one.certificate()},
      {one.certificate(), two.key(), "TLS key " + two.key()},
      {one.certificate(), one.locked_key(), "TLS key " + one.locked_key()},
  };
  for (const Case& row : cases) {
    const auto loaded = load_server_tls(row.certificate, row.key);
    ASSERT_FALSE(loaded) << row.want;
    EXPECT_EQ(loaded.error().code, base::ErrorCode::kInvalidParameter);
    EXPECT_NE(loaded.error().message.find(row.want), std::string::npos) << loaded.error().message;
  }
  EXPECT_TRUE(load_server_tls(one.certificate(), one.key()));
  EXPECT_FALSE(load_client_tls("/nowhere/ca.pem"));
  EXPECT_FALSE(load_client_tls(one.key()));
}

}  // namespace
}  // namespace cotenant::net
