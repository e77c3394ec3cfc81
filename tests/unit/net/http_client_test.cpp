#include "net/http_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "http_fakes.h"
#include "net/http_server.h"
#include "raw_socket.h"

namespace cotenant::net {
namespace {

using net_test::Monitor;
using net_test::RawListener;
using net_test::RawSocket;
using std::chrono::milliseconds;

std::unique_ptr<ports::HttpClient> client_for(const std::string& endpoint,
                                              HttpClientOptions options = {}) {
  auto client = make_http_client(endpoint, options);
  if (!client) {
    ADD_FAILURE() << client.error().message;
    return nullptr;
  }
  return std::move(*client);
}

std::string endpoint_of(std::uint16_t port) {
  return fmt::format("http://127.0.0.1:{}", port);
}

ports::HttpRequest get(std::string target) {
  return {"GET", std::move(target), {}, ""};
}

// Serves one connection: reads the request's header, then does as it is told.
class OneShotServer {
 public:
  OneShotServer(RawListener& listener, std::function<void(RawSocket&)> answer)
      : thread_([&listener, run = std::move(answer)] {
          RawSocket socket = listener.accept();
          if (socket.is_open() && socket.read_until("\r\n\r\n")) run(socket);
        }) {}
  ~OneShotServer() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST(HttpClientTest, ReadsAnswers) {
  struct Case {
    std::string name;
    std::string answer;
    int status;
    std::string body;
  };
  const std::vector<Case> cases = {
      {"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello"},
      {"chunked",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", 200,
       "hello"},
      {"until the end", "HTTP/1.1 200 OK\r\n\r\nhello", 200, "hello"},
      {"empty", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
      {"error", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", 404, "gone"},
      {"interim",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"
       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
       200, "hi"},
      {"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nold", 200, "old"},
  };
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    OneShotServer server(listener, [&](RawSocket& socket) { socket.send(c.answer); });
    const auto response = client->send(get("/"), net_test::kPatience);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->status, c.status);
    EXPECT_EQ(response->body, c.body);
  }
}

TEST(HttpClientTest, RefusesBadAnswers) {
  struct Case {
    std::string name;
    std::string answer;
    base::ErrorCode code;
    std::string want;
  };
  std::string endless;
  for (int i = 0; i < 50; ++i) endless += "HTTP/1.1 100 Continue\r\n\r\n";
  const std::vector<Case> cases = {
      {"nothing", "", base::ErrorCode::kIo, "without an answer"},
      {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n", base::ErrorCode::kProtocol, "not an HTTP answer"},
      {"half a header", "HTTP/1.1 200 OK\r\nA: ", base::ErrorCode::kIo, "in the middle"},
      {"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", base::ErrorCode::kIo,
       "in the middle"},
      {"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
       base::ErrorCode::kIo, "in the middle"},
      {"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
       base::ErrorCode::kProtocol, "not an HTTP answer"},
      {"too long", "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", base::ErrorCode::kProtocol,
       "larger than 1000 bytes"},
      {"too long in chunks",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + std::string(1001, 'a'),
       base::ErrorCode::kProtocol, "larger than 1000 bytes"},
      {"too long without a length", "HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'a'),
       base::ErrorCode::kProtocol, "larger than 1000 bytes"},
      {"header too long", "HTTP/1.1 200 OK\r\nA: " + std::string(5000, 'a') + "\r\n\r\n",
       base::ErrorCode::kProtocol, "header is larger than 4096 bytes"},
      {"endless interim answers", endless, base::ErrorCode::kProtocol, "too many interim"},
  };
  RawListener listener;
  HttpClientOptions options;
  options.body_bytes = 1000;
  options.header_bytes = 4096;
  const auto client = client_for(endpoint_of(listener.port()), options);
  ASSERT_TRUE(client);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    OneShotServer server(listener, [&](RawSocket& socket) {
      socket.send(c.answer);
      socket.finish_sending();
      socket.read_to_end();
    });
    const auto response = client->send(get("/thing"), net_test::kPatience);
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, c.code) << response.error().message;
    EXPECT_NE(response.error().message.find(c.want), std::string::npos) << response.error().message;
    EXPECT_NE(response.error().message.find("GET /thing at http://127.0.0.1:"), std::string::npos)
        << response.error().message;
  }
}

TEST(HttpClientTest, SendsTheRequestAsGiven) {
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  std::string seen;
  {
    OneShotServer server(listener, [&](RawSocket& socket) {
      socket.read_until("{\"a\":1}");
      seen = socket.received();
      socket.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Answer: 42\r\n\r\n");
    });
    const auto response = client->send({"POST",
                                        "/v1?x=y",
                                        {{"X-Amz-Target", "Service.Op"},
                                         {"Content-Length", "999"},
                                         {"Connection", "keep-alive"},
                                         {"Host", "signed.example"}},
                                        "{\"a\":1}"},
                                       net_test::kPatience);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(ports::header_value(response->headers, "x-answer"), "42");
  }
  EXPECT_EQ(seen.find("POST /v1?x=y HTTP/1.1\r\n"), 0u) << seen;
  for (const std::string want : {"X-Amz-Target: Service.Op\r\n", "Content-Length: 7\r\n",
                                 "Connection: close\r\n", "Host: signed.example\r\n"}) {
    EXPECT_NE(seen.find(want), std::string::npos) << "want " << want << " in " << seen;
  }
  EXPECT_EQ(seen.find("999"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("127.0.0.1"), std::string::npos) << seen;
}

TEST(HttpClientTest, RefusesRequestsThatWouldBreakTheMessage) {
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  const std::vector<std::pair<ports::HttpRequest, std::string>> cases = {
      {{"GE T", "/", {}, ""}, "method"},
      {{"", "/", {}, ""}, "method"},
      {{"GET", "/ HTTP/1.1\r\nA: b", {}, ""}, "target"},
      {{"GET", "", {}, ""}, "target"},
      {{"GET", "/\xc3\xa9", {}, ""}, "target"},
      {{"GET", "/", {{"A", "b\r\nC: d"}}, ""}, "header A"},
      {{"GET", "/", {{"A b", "c"}}, ""}, "header name 'A b'"},
  };
  for (const auto& [request, want] : cases) {
    SCOPED_TRACE(want);
    const auto response = client->send(request, net_test::kPatience);
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, base::ErrorCode::kInvalidParameter);
    EXPECT_NE(response.error().message.find(want), std::string::npos) << response.error().message;
  }
}

TEST(HttpClientTest, HeadHasNoBody) {
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  Monitor monitor;
  bool done = false;
  // The connection stays open: a client that waited for 5 bytes would time out.
  OneShotServer server(listener, [&](RawSocket& socket) {
    socket.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    monitor.wait([&] { return done; });
  });
  const auto response = client->send({"HEAD", "/", {}, ""}, milliseconds(5000));
  monitor.update([&] { done = true; });
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->body, "");
}

TEST(HttpClientTest, TimesOut) {
  struct Case {
    std::string name;
    std::string answer;
  };
  const std::vector<Case> cases = {
      {"silence", ""},
      {"half a header", "HTTP/1.1 200 OK\r\n"},
      {"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"},
  };
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    OneShotServer server(listener, [&](RawSocket& socket) {
      socket.send(c.answer);
      socket.read_to_end();  // until the client gives up
    });
    const auto response = client->send(get("/"), milliseconds(50));
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, base::ErrorCode::kTimeout) << response.error().message;
  }
}

TEST(HttpClientTest, CannotConnect) {
  std::uint16_t free_port = 0;
  {
    const RawListener listener;
    free_port = listener.port();
  }
  struct Case {
    std::string endpoint;
    std::string want;
  };
  const std::vector<Case> cases = {
      {endpoint_of(free_port), "Connection refused"},
      {"unix:///nonexistent/engine.sock", "No such file or directory"},
      {"http://name.invalid:80", "http://name.invalid:80"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.endpoint);
    const auto client = client_for(c.endpoint);
    ASSERT_TRUE(client);
    const auto response = client->send(get("/"), net_test::kPatience);
    ASSERT_FALSE(response.has_value());
    EXPECT_EQ(response.error().code, base::ErrorCode::kUnavailable);
    EXPECT_NE(response.error().message.find(c.want), std::string::npos) << response.error().message;
  }
}

TEST(HttpClientTest, BadEndpoint) {
  const auto client = make_http_client("ftp://127.0.0.1");
  ASSERT_FALSE(client.has_value());
  EXPECT_NE(client.error().message.find("want http://host:port"), std::string::npos);
}

TEST(HttpClientTest, ResolvesNames) {
  net_test::FunctionHandler handler([](ports::HttpRequest request, const auto& respond) {
    respond({200, {}, std::string(ports::header_value(request.headers, "Host"))});
  });
  const auto server = HttpServer::start({}, handler);
  ASSERT_TRUE(server.has_value()) << server.error().message;
  // "localhost" may have ::1 first, where nobody listens: the next address is tried.
  const std::string authority = fmt::format("localhost:{}", (*server)->port());
  const auto client = client_for("http://" + authority);
  ASSERT_TRUE(client);
  const auto response = client->send(get("/"), net_test::kPatience);
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->body, authority);
}

// The server refuses the body and closes while the client is still sending it.
TEST(HttpClientTest, ReadsARefusalOfALargeBody) {
  net_test::FunctionHandler handler([](ports::HttpRequest, const auto& respond) { respond({}); });
  const auto server = HttpServer::start({}, handler);
  ASSERT_TRUE(server.has_value());
  const auto client = client_for(endpoint_of((*server)->port()));
  ASSERT_TRUE(client);
  const auto response =
      client->send({"POST", "/", {}, std::string(8 * 1024 * 1024, 'a')}, net_test::kPatience);
  ASSERT_TRUE(response.has_value()) << response.error().message;
  EXPECT_EQ(response->status, 413);
}

std::string unix_path(const std::string& name) {
  return fmt::format("{}/cotenant-{}-{}.sock", ::testing::TempDir(), name, ::getpid());
}

TEST(HttpClientTest, UnixSocket) {
  const std::string path = unix_path("client");
  RawListener listener(path);
  const auto client = client_for("unix://" + path);
  ASSERT_TRUE(client);
  std::string seen;
  {
    OneShotServer server(listener, [&](RawSocket& socket) {
      seen = socket.received();
      socket.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK");
    });
    const auto response = client->send(get("/_ping"), net_test::kPatience);
    ASSERT_TRUE(response.has_value()) << response.error().message;
    EXPECT_EQ(response->body, "OK");
  }
  EXPECT_EQ(seen.find("GET /_ping HTTP/1.1\r\nHost: localhost\r\n"), 0u) << seen;
}

TEST(HttpClientTest, StreamHandsOverEachPieceAtOnce) {
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  Monitor monitor;
  std::string text;
  const auto has = [&](std::string_view want) {
    return monitor.wait([&] { return text.find(want) != std::string::npos; });
  };
  OneShotServer server(listener, [&](RawSocket& socket) {
    socket.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    // The next piece is sent only when the one before has arrived.
    EXPECT_TRUE(has("one"));
    socket.send("3\r\ntwo\r\n");
    EXPECT_TRUE(has("two"));
    socket.send("0\r\n\r\n");
  });
  const base::Status status = client->stream(
      get("/events"), [&](std::string_view piece) { monitor.update([&] { text += piece; }); }, {});
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(text, "onetwo");
}

// More than send() would take, with a length and without.
TEST(HttpClientTest, StreamHasNoSizeLimit) {
  constexpr std::size_t kBytes = 300000;
  RawListener listener;
  HttpClientOptions options;
  options.body_bytes = 1000;
  const auto client = client_for(endpoint_of(listener.port()), options);
  ASSERT_TRUE(client);
  for (const std::string header : {"Content-Length: 300000\r\n", ""}) {
    SCOPED_TRACE(header);
    OneShotServer server(listener, [&](RawSocket& socket) {
      socket.send("HTTP/1.1 200 OK\r\n" + header + "\r\n" + std::string(kBytes, 'a'));
    });
    std::size_t size = 0;
    const base::Status status =
        client->stream(get("/"), [&](std::string_view piece) { size += piece.size(); }, {});
    ASSERT_TRUE(status.has_value()) << status.error().message;
    EXPECT_EQ(size, kBytes);
  }
}

TEST(HttpClientTest, StreamStops) {
  struct Case {
    std::string name;
    std::string answer;
  };
  const std::vector<Case> cases = {
      {"before the header", ""},
      {"between pieces", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"},
  };
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::stop_source stop;
    OneShotServer server(listener, [&](RawSocket& socket) {
      socket.send(c.answer);
      stop.request_stop();
      EXPECT_TRUE(socket.read_to_end().has_value()) << "the client hangs up";
    });
    const auto began = std::chrono::steady_clock::now();
    const base::Status status = client->stream(
        get("/events"), [](std::string_view) {}, stop.get_token());
    EXPECT_TRUE(status.has_value()) << status.error().message;
    EXPECT_LT(std::chrono::steady_clock::now() - began, milliseconds(5000));
  }
}

TEST(HttpClientTest, StreamStoppedBeforehand) {
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(client
                  ->stream(
                      get("/"), [](std::string_view) {}, stop.get_token())
                  .has_value());
}

TEST(HttpClientTest, StreamErrors) {
  struct Case {
    std::string name;
    std::string answer;
    base::ErrorCode code;
    std::string want;
  };
  const std::vector<Case> cases = {
      {"status", "HTTP/1.1 404 Not Found\r\nContent-Length: 17\r\n\r\nno such container",
       base::ErrorCode::kProtocol, "answered 404: no such container"},
      {"long text", "HTTP/1.1 500 Oops\r\n\r\n" + std::string(100000, 'a'),
       base::ErrorCode::kProtocol, "answered 500: aaaa"},
      {"breaks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\non",
       base::ErrorCode::kIo, "in the middle"},
  };
  RawListener listener;
  const auto client = client_for(endpoint_of(listener.port()));
  ASSERT_TRUE(client);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    OneShotServer server(listener, [&](RawSocket& socket) { socket.send(c.answer); });
    const base::Status status = client->stream(get("/"), [](std::string_view) {}, {});
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, c.code) << status.error().message;
    EXPECT_NE(status.error().message.find(c.want), std::string::npos) << status.error().message;
    EXPECT_LT(status.error().message.size(), 4096u);
  }
}

// A real engine, where COTENANT_TEST_ENGINE names one ("unix:///var/run/docker.sock").
TEST(HttpClientTest, RealEngine) {
  const char* const endpoint = std::getenv("COTENANT_TEST_ENGINE");
  if (endpoint == nullptr) GTEST_SKIP() << "COTENANT_TEST_ENGINE is not set";
  const auto client = client_for(endpoint);
  ASSERT_TRUE(client);
  const auto info = client->send(get("/info"), net_test::kPatience);
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_EQ(info->status, 200);
  EXPECT_NE(info->body.find("\"ServerVersion\""), std::string::npos) << info->body;

  std::stop_source stop;
  std::thread stopper;
  const auto began = std::chrono::steady_clock::now();
  stopper = std::thread([&] { stop.request_stop(); });
  const base::Status status = client->stream(
      get("/events"), [](std::string_view) {}, stop.get_token());
  stopper.join();
  EXPECT_TRUE(status.has_value()) << status.error().message;
  EXPECT_LT(std::chrono::steady_clock::now() - began, net_test::kPatience);
}

}  // namespace
}  // namespace cotenant::net
