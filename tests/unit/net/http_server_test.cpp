#include "net/http_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "http_fakes.h"
#include "net/connection_table.h"
#include "raw_socket.h"

namespace cotenant::net {
namespace {

using net_test::FunctionHandler;
using net_test::Monitor;
using net_test::RawSocket;
using std::chrono::milliseconds;

std::unique_ptr<HttpServer> start(ports::HttpHandler& handler,
                                  const HttpServerOptions& options = {}) {
  auto server = HttpServer::start(options, handler);
  if (!server) {
    ADD_FAILURE() << server.error().message;
    return nullptr;
  }
  return std::move(*server);
}

void echo(const ports::HttpRequest& request, const ports::HttpResponder& respond) {
  ports::HttpResponse response;
  response.headers.push_back({"X-Cotenant", "yes"});
  response.body = fmt::format("{} {}|{}", request.method, request.target, request.body);
  respond(std::move(response));
}

// The text of `bytes` without header Date, which changes.
std::string without_date(std::string bytes) {
  for (std::size_t at = 0; (at = bytes.find("Date: ", at)) != std::string::npos;) {
    bytes.erase(at, bytes.find("\r\n", at) + 2 - at);
  }
  return bytes;
}

TEST(HttpServerTest, AnswersRawRequests) {
  struct Case {
    std::string name;
    std::string sent;
    std::vector<std::string> want;  // in this order
    std::string unwanted;
  };
  const std::string get = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string last = "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
  const std::vector<Case> cases = {
      {"good", last, {"HTTP/1.1 200 OK\r\n", "X-Cotenant: yes", "\r\n\r\nGET /last|"}, "400"},
      {"body",
       "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
       {"HTTP/1.1 200 OK\r\n", "Content-Length: 12", "\r\n\r\nPOST /|hello"},
       ""},
      {"chunked body",
       "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
       "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
       {"HTTP/1.1 200 OK\r\n", "\r\n\r\nPOST /|hello"},
       ""},
      {"GET with a body keeps the connection in step",
       "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" + last,
       {"200 OK", "GET /a|hello", "200 OK", "GET /last|"},
       "400"},
      {"pipelined",
       get + "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi" + last,
       {"200 OK", "GET /a|", "200 OK", "POST /b|hi", "200 OK", "GET /last|"},
       "400"},
      {"pipelined after an error is not read",
       get + "nonsense\r\n\r\n" + last,
       {"200 OK", "GET /a|", "400 Bad Request"},
       "GET /last|"},
      {"HEAD",
       "HEAD /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       {"HTTP/1.1 200 OK\r\n", "Content-Length: 8\r\n"},
       "HEAD /a|"},
      {"HEAD keeps the connection in step",
       "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" + last,
       {"200 OK", "Content-Length: 8\r\n\r\nHTTP/1.1 200 OK\r\n", "GET /last|"},
       ""},
      {"unknown method",
       "BREW /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       {"200 OK", "BREW /a|"},
       ""},
      {"HTTP/1.0", "GET /a HTTP/1.0\r\n\r\n", {"HTTP/1.0 200 OK\r\n", "GET /a|"}, "keep-alive"},
      {"upgrade refused",
       "GET /agent HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
       {"404 Not Found", "no WebSocket at this path"},
       ""},
      {"upgrade to something else is an ordinary request",
       "GET /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n",
       {"200 OK", "GET /a|"},
       ""},

      {"nonsense", "nonsense\r\n\r\n", {"400 Bad Request", "malformed HTTP request"}, "200"},
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00", 7), {"400 Bad Request"}, "200"},
      {"bad version",
       "GET / HTTP/9\r\n\r\n",
       {"400 Bad Request", "\"message\":\"malformed"},
       "200"},
      {"no Host", "GET / HTTP/1.1\r\n\r\n", {"400 Bad Request", "exactly one Host"}, "200"},
      {"two Hosts",
       "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
       {"400 Bad Request", "exactly one Host"},
       "200"},
      {"space in header name", "GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n", {"400"}, "200"},
      {"bad chunk size",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
       {"400 Bad Request", "chunk"},
       "200"},
      {"huge chunk size",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
       {"400 Bad Request", "chunk"},
       "200"},
      {"bad Content-Length",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: five\r\n\r\nhello",
       {"400 Bad Request", "Content-Length"},
       "200"},
      {"negative Content-Length",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
       {"400 Bad Request", "Content-Length"},
       "200"},
      {"two Content-Lengths",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
       {"400 Bad Request"},
       "200"},
      {"Content-Length and Transfer-Encoding",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
       "0\r\n\r\n",
       {"400 Bad Request"},
       "200"},
      {"header too large",
       "GET / HTTP/1.1\r\nHost: h\r\nA: " + std::string(5000, 'a') + "\r\n\r\n",
       {"431", "larger than 4096 bytes"},
       "200"},
      {"target too large", "GET /" + std::string(5000, 'a'), {"431", "4096 bytes"}, "200"},
      {"body too large",
       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n" + std::string(1001, 'a'),
       {"413", "\"__type\":\"InvalidParameterException\"", "larger than 1000 bytes"},
       "200"},
      {"body of the largest size",
       "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n" +
           std::string(1000, 'a'),
       {"200 OK"},
       "413"},
      {"chunked body too large",
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" +
           std::string(1001, 'a') + "\r\n0\r\n\r\n",
       {"413", "larger than 1000 bytes"},
       "200"},
      {"Expect before a body that is too large",
       "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
       {"413"},
       "100 Continue"},
      {"unknown Expect",
       "POST / HTTP/1.1\r\nHost: h\r\nExpect: a-miracle\r\nContent-Length: 1\r\n\r\n",
       {"417", "only 100-continue"},
       "100 Continue"},
  };

  FunctionHandler handler(echo);
  HttpServerOptions options;
  options.header_bytes = 4096;
  options.body_bytes = 1000;
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RawSocket client = RawSocket::connect_tcp(server->port());
    ASSERT_TRUE(client.send(c.sent));
    // The server closes by itself after an error or "Connection: close"; its lingering ends with
    // ours.
    ASSERT_TRUE(client.read_until("\r\n\r\n")) << client.received();
    client.finish_sending();
    const auto answer = client.read_to_end();
    ASSERT_TRUE(answer.has_value()) << client.received();
    const std::string text = without_date(*answer);
    std::size_t at = 0;
    for (const std::string& want : c.want) {
      at = text.find(want, at);
      ASSERT_NE(at, std::string::npos) << "want: " << want << "\ngot: " << text;
      at += want.size();
    }
    if (!c.unwanted.empty()) {
      EXPECT_EQ(text.find(c.unwanted), std::string::npos) << text;
    }
  }
  EXPECT_TRUE(net_test::poll_until([&] { return server->connections() == 0; }));
}

// The answer must reach a client that is still sending a body far over the limit.
TEST(HttpServerTest, RefusalReachesAClientThatKeepsSending) {
  FunctionHandler handler(echo);
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 8000000\r\n\r\n"));
  ASSERT_TRUE(client.send(std::string(8000000, 'a')));
  client.finish_sending();
  const auto answer = client.read_to_end();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->find("HTTP/1.1 413"), 0u) << *answer;
}

TEST(HttpServerTest, ContinuesWhenAsked) {
  FunctionHandler handler(echo);
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send(
      "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n"));
  ASSERT_TRUE(client.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  EXPECT_EQ(client.received(), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.send("hello"));
  EXPECT_TRUE(client.read_until("POST /x|hello")) << client.received();
}

TEST(HttpServerTest, SetsDateAndKeepsFramingToItself) {
  FunctionHandler handler([](ports::HttpRequest, const ports::HttpResponder& respond) {
    respond(
        {200, {{"Content-Length", "99"}, {"Transfer-Encoding", "chunked"}, {"A", "b"}}, "body"});
  });
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(client.read_until("\r\n\r\nbody"));
  const std::string text = client.received();
  EXPECT_NE(text.find("Content-Length: 4\r\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("99"), std::string::npos) << text;
  EXPECT_EQ(text.find("Transfer-Encoding"), std::string::npos) << text;
  EXPECT_NE(text.find("A: b\r\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" GMT\r\n"), std::string::npos) << text;
}

TEST(HttpServerTest, NoContentHasNeitherBodyNorLength) {
  FunctionHandler handler([](ports::HttpRequest, const ports::HttpResponder& respond) {
    respond({204, {{"Connection", "close"}}, "ignored"});
  });
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  const auto answer = client.read_to_end();  // the handler's Connection: close is obeyed
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->find("HTTP/1.1 204 No Content\r\n"), 0u) << *answer;
  EXPECT_EQ(answer->find("Content-Length"), std::string::npos) << *answer;
  EXPECT_EQ(answer->find("ignored"), std::string::npos) << *answer;
}

TEST(HttpServerTest, SilentConnectionsAreClosed) {
  struct Case {
    std::string name;
    std::string sent;
  };
  const std::vector<Case> cases = {
      {"nothing", ""},
      {"half a header", "GET / HTTP/1.1\r\nHost"},
      {"half a body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe"},
  };
  FunctionHandler handler(echo);
  HttpServerOptions options;
  options.idle_timeout = milliseconds(50);
  options.read_timeout = milliseconds(50);
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    RawSocket client = RawSocket::connect_tcp(server->port());
    ASSERT_TRUE(client.send(c.sent));
    const auto answer = client.read_to_end();
    ASSERT_TRUE(answer.has_value()) << "still open";
    EXPECT_EQ(*answer, "");
  }
}

// Each byte comes soon enough for any per-read limit; the request as a whole does not.
TEST(HttpServerTest, TricklingRequestIsClosed) {
  FunctionHandler handler(echo);
  HttpServerOptions options;
  options.read_timeout = milliseconds(100);
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\nA: "));
  EXPECT_TRUE(net_test::poll_until([&] { return !client.send("a"); }));
}

TEST(HttpServerTest, LargeResponseToASlowReaderIsGivenUp) {
  FunctionHandler handler([](ports::HttpRequest, const ports::HttpResponder& respond) {
    respond({200, {}, std::string(32 * 1024 * 1024, 'a')});
  });
  HttpServerOptions options;
  options.write_timeout = milliseconds(100);
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(client.read_until("200 OK"));
  EXPECT_TRUE(net_test::poll_until([&] { return server->connections() == 0; }));
}

TEST(HttpServerTest, HandlerFailuresAnswer500AndTheServerLives) {
  struct Case {
    std::string name;
    FunctionHandler::Handle handle;
  };
  const std::vector<Case> cases = {
      {"throws", [](auto, const auto&) { throw std::runtime_error("secret"); }},
      {"throws an int", [](auto, const auto&) { throw 1; }},
      {"drops the responder", [](auto, const auto&) {}},
      {"impossible status",
       [](auto, const auto& respond) {
         respond({99, {}, "secret"});
       }},
      {"header injection",
       [](auto, const auto& respond) {
         respond({200, {{"A", "b\r\nSet-Cookie: x"}}, "secret"});
       }},
      {"header name",
       [](auto, const auto& respond) {
         respond({200, {{"A:", "b"}}, "secret"});
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    FunctionHandler handler([&](ports::HttpRequest request, const ports::HttpResponder& respond) {
      if (request.target == "/good") return echo(request, respond);
      c.handle(std::move(request), respond);
    });
    const auto server = start(handler);
    ASSERT_TRUE(server);
    RawSocket client = RawSocket::connect_tcp(server->port());
    ASSERT_TRUE(
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"
                    "GET /good HTTP/1.1\r\nHost: h\r\n\r\n"));
    ASSERT_TRUE(client.read_until("GET /good|")) << client.received();
    EXPECT_EQ(client.received().find("HTTP/1.1 500"), 0u) << client.received();
    EXPECT_NE(client.received().find("\"__type\":\"ServerException\""), std::string::npos);
    EXPECT_EQ(client.received().find("secret"), std::string::npos) << client.received();
    EXPECT_EQ(client.received().find("Set-Cookie"), std::string::npos) << client.received();
  }
}

TEST(HttpServerTest, UpgradeThatThrowsAnswers500) {
  FunctionHandler handler(
      echo, [](const ports::HttpRequest&) -> std::shared_ptr<ports::WebSocketListener> {
        throw std::runtime_error("secret");
      });
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send(
      "GET /agent HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
  EXPECT_TRUE(client.read_until("HTTP/1.1 500")) << client.received();
}

// Keeps responders for the test to use later.
struct Parking {
  Monitor monitor;
  std::vector<ports::HttpResponder> responders;

  FunctionHandler::Handle handle() {
    return [this](ports::HttpRequest, ports::HttpResponder respond) {
      monitor.update([&] { responders.push_back(std::move(respond)); });
    };
  }
  bool wait(std::size_t count) {
    return monitor.wait([&] { return responders.size() >= count; });
  }
  std::vector<ports::HttpResponder> take() {
    return monitor.read([&] { return std::exchange(responders, {}); });
  }
};

TEST(HttpServerTest, LateAnswerFromAnotherThreadAndOnlyTheFirstCounts) {
  Parking parking;
  FunctionHandler handler(parking.handle());
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(parking.wait(1));
  auto first = parking.take();
  std::thread([&] {
    first[0]({200, {}, "first"});
    first[0]({200, {}, "again"});
  }).join();
  ASSERT_TRUE(client.read_until("first"));
  ASSERT_TRUE(parking.wait(1)) << "the second request comes after the first answer";
  first[0]({200, {}, "stale"});
  parking.take()[0]({200, {}, "second"});
  ASSERT_TRUE(client.read_until("second"));
  EXPECT_EQ(client.received().find("again"), std::string::npos) << client.received();
  EXPECT_EQ(client.received().find("stale"), std::string::npos) << client.received();
}

TEST(HttpServerTest, OneRequestAtATimePerConnection) {
  std::atomic<int> inside{0};
  std::atomic<bool> overlapped{false};
  Monitor monitor;
  std::vector<std::thread> workers;
  FunctionHandler handler([&](ports::HttpRequest request, ports::HttpResponder respond) {
    if (inside.fetch_add(1) != 0) overlapped = true;
    monitor.update([&] {
      workers.emplace_back([&inside, request = std::move(request), respond = std::move(respond)] {
        inside.fetch_sub(1);
        echo(request, respond);
      });
    });
  });
  HttpServerOptions options;
  options.threads = 4;
  auto server = start(handler, options);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  std::string burst;
  for (int i = 0; i < 100; ++i) burst += fmt::format("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", i);
  ASSERT_TRUE(client.send(burst));
  EXPECT_TRUE(client.read_until("GET /99|"));
  EXPECT_FALSE(overlapped);
  server.reset();
  for (std::thread& worker : workers) worker.join();
}

TEST(HttpServerTest, PeerGoneBeforeTheAnswer) {
  Parking parking;
  FunctionHandler handler(parking.handle());
  const auto server = start(handler);
  ASSERT_TRUE(server);
  for (const bool with_reset : {false, true}) {
    SCOPED_TRACE(with_reset);
    RawSocket client = RawSocket::connect_tcp(server->port());
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    ASSERT_TRUE(parking.wait(1));
    if (with_reset) client.reset();
    client.close();
    parking.take()[0]({200, {}, std::string(1 << 20, 'a')});
    EXPECT_TRUE(net_test::poll_until([&] { return server->connections() == 0; }));
  }
}

TEST(HttpServerTest, HalfClosedPeerStillGetsItsAnswer) {
  Parking parking;
  FunctionHandler handler(parking.handle());
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  client.finish_sending();
  ASSERT_TRUE(parking.wait(1));
  parking.take()[0]({200, {}, "answer"});
  const auto answer = client.read_to_end();
  ASSERT_TRUE(answer.has_value());
  EXPECT_NE(answer->find("answer"), std::string::npos);
}

TEST(HttpServerTest, StopWithPendingRequests) {
  Parking parking;
  FunctionHandler handler(parking.handle());
  auto server = start(handler);
  ASSERT_TRUE(server);
  std::vector<RawSocket> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(RawSocket::connect_tcp(server->port()));
    ASSERT_TRUE(clients.back().send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  }
  clients.push_back(RawSocket::connect_tcp(server->port()));  // idle
  ASSERT_TRUE(parking.wait(8));
  const std::uint16_t port = server->port();
  server->stop();
  server->stop();
  EXPECT_EQ(server->connections(), 0u);
  for (RawSocket& client : clients) EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(RawSocket::connect_tcp(port).is_open());

  auto responders = parking.take();
  responders[0]({200, {}, "too late"});  // between stop and destruction
  server.reset();
  responders[1]({200, {}, "far too late"});
  responders.clear();  // the rest is dropped without an answer
}

TEST(HttpServerTest, StopFinishesTheResponseThatIsBeingWritten) {
  constexpr std::size_t kBodyBytes = 8 * 1024 * 1024;
  FunctionHandler handler([](ports::HttpRequest, const ports::HttpResponder& respond) {
    respond({200, {}, std::string(kBodyBytes, 'a')});
  });
  HttpServerOptions options;
  options.stop_grace = net_test::kPatience;
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(client.read_until("200 OK"));
  std::thread stopper([&] { server->stop(); });
  const auto answer = client.read_to_end();
  stopper.join();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->size() - answer->find("\r\n\r\n") - 4, kBodyBytes);
}

TEST(HttpServerTest, StopDoesNotWaitForAPeerThatReadsNothing) {
  FunctionHandler handler([](ports::HttpRequest, const ports::HttpResponder& respond) {
    respond({200, {}, std::string(32 * 1024 * 1024, 'a')});
  });
  const auto server = start(handler);
  ASSERT_TRUE(server);
  RawSocket client = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(client.read_until("200 OK"));
  const auto began = std::chrono::steady_clock::now();
  server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, net_test::kPatience);
}

TEST(HttpServerTest, ConnectionsBeyondTheLimitAreToldWhenAllAreAtWork) {
  Parking parking;
  FunctionHandler handler(parking.handle());
  HttpServerOptions options;
  options.connections = 2;
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  RawSocket first = RawSocket::connect_tcp(server->port());
  RawSocket second = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(first.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(second.send("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(parking.wait(2));
  RawSocket third = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(third.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_TRUE(third.read_until("limit of 2 connections")) << third.received();
  EXPECT_EQ(third.received().find("HTTP/1.1 503"), 0u);
  third.close();

  first.close();
  second.close();
  for (auto& respond : parking.take()) respond({});
  ASSERT_TRUE(net_test::poll_until([&] { return server->connections() == 0; }));
  RawSocket fourth = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(fourth.send("GET /4 HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_TRUE(parking.wait(1));
}

TEST(HttpServerTest, SilentConnectionsMakeRoomOldestFirst) {
  FunctionHandler handler(echo);
  HttpServerOptions options;
  options.connections = 3;
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  RawSocket silent = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(net_test::poll_until([&] { return server->connections() == 1; }));
  RawSocket served = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(served.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"));
  ASSERT_TRUE(served.read_until("GET /1|"));
  RawSocket reading = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(reading.send("GET /slow HTTP/1.1\r\n"));
  ASSERT_TRUE(net_test::poll_until([&] { return server->connections() == 3; }));

  RawSocket newcomer = RawSocket::connect_tcp(server->port());
  ASSERT_TRUE(newcomer.send("GET /new HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_TRUE(newcomer.read_until("GET /new|")) << newcomer.received();
  EXPECT_EQ(silent.read_to_end(), "");  // closed without a word
  // Whoever waits between two requests stays while an older one can go.
  served.clear_received();
  ASSERT_TRUE(served.send("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_TRUE(served.read_until("GET /2|")) << served.received();
}

TEST(ConnectionTableTest, WhoMakesRoom) {
  using TimePoint = ConnectionTable::TimePoint;
  struct Entry {
    Activity activity;
    int since_ms;
  };
  struct Row {
    std::string name;
    std::vector<Entry> entries;
    int want;  // index, -1: nobody
  };
  const int grace = static_cast<int>(kReadingGrace.count());
  const Row rows[] = {
      {"none", {}, -1},
      {"busy ones stay", {{Activity::kBusy, 0}, {Activity::kBusy, 1}}, -1},
      {"a waiting one", {{Activity::kBusy, 0}, {Activity::kWaiting, 9999}}, 1},
      {"the oldest waiting one", {{Activity::kWaiting, 5}, {Activity::kWaiting, 3}}, 1},
      {"waiting before reading", {{Activity::kReading, 0}, {Activity::kWaiting, 9999}}, 1},
      {"reading for long", {{Activity::kReading, 10000 - grace}, {Activity::kBusy, 0}}, 0},
      {"reading not for long", {{Activity::kReading, 10001 - grace}}, -1},
  };
  for (const Row& row : rows) {
    ConnectionTable table;
    // Only keys: sessions that have gone already, so that the answer is known by who is left.
    std::vector<char> keys(row.entries.size() + 1);
    const auto key = [&](std::size_t i) { return reinterpret_cast<const HttpSession*>(&keys[i]); };
    for (std::size_t i = 0; i < row.entries.size(); ++i) {
      table.note(key(i), {}, row.entries[i].activity,
                 TimePoint(milliseconds(row.entries[i].since_ms)));
    }
    table.take_victim(TimePoint(milliseconds(10000)));
    const std::size_t left = row.entries.size() - (row.want < 0 ? 0 : 1);
    EXPECT_EQ(table.size(), left) << row.name;
    if (row.want < 0) continue;
    table.remove(key(static_cast<std::size_t>(row.want)));
    EXPECT_EQ(table.size(), left) << row.name << ": another one went";
  }
}

TEST(HttpServerTest, ConcurrentClients) {
  FunctionHandler handler(echo);
  HttpServerOptions options;
  options.threads = 4;
  const auto server = start(handler, options);
  ASSERT_TRUE(server);
  std::atomic<int> answered{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 16; ++c) {
    clients.emplace_back([&, c] {
      RawSocket client = RawSocket::connect_tcp(server->port());
      for (int i = 0; i < 50; ++i) {
        const std::string body = fmt::format("<{}.{}>", c, i);
        client.clear_received();
        if (!client.send(fmt::format("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}",
                                     body.size(), body))) {
          return;
        }
        if (!client.read_until("POST /|" + body)) return;
        ++answered;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(answered, 16 * 50);
}

TEST(HttpServerTest, StartErrors) {
  FunctionHandler handler(echo);
  const auto server = start(handler);
  ASSERT_TRUE(server);
  struct Case {
    std::string name;
    HttpServerOptions options;
    base::ErrorCode code;
    std::string want;
  };
  std::vector<Case> cases(5);
  cases[0] = {"name", {}, base::ErrorCode::kInvalidParameter, "address 'localhost': want an IP"};
  cases[0].options.address = "localhost";
  cases[1] = {"threads", {}, base::ErrorCode::kInvalidParameter, "threads: want 1 to 64, got 0"};
  cases[1].options.threads = 0;
  cases[2] = {"threads", {}, base::ErrorCode::kInvalidParameter, "threads: want 1 to 64, got 65"};
  cases[2].options.threads = 65;
  cases[3] = {"port taken", {}, base::ErrorCode::kUnavailable, "cannot listen on 127.0.0.1 port"};
  cases[3].options.port = server->port();
  cases[4] = {"not ours", {}, base::ErrorCode::kUnavailable, "cannot listen on 192.0.2.1"};
  cases[4].options.address = "192.0.2.1";
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto failed = HttpServer::start(c.options, handler);
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code, c.code);
    EXPECT_NE(failed.error().message.find(c.want), std::string::npos) << failed.error().message;
  }
}

}  // namespace
}  // namespace cotenant::net
