// The HTTP/1.1 and WebSocket server in front of a ports::HttpHandler.
//
// Threads: any thread may call; stop() and the destructor not from a handler or a listener, since
// they join the server's threads. handle() and upgrade() run on those threads, several at once, and
// must not block. Requests of one connection are handed over one at a time, in order (pipelining
// waits). Ownership: the handler must outlive the server. Responders and WebSockets may outlive it:
// they then do nothing. Errors, each with a JSON body {"__type", "message"}: 400 malformed (closes
// the connection), 413 body and 431 header too large, 417 unknown Expect, 500
// the handler threw, dropped the responder or gave an impossible response, 503 too many
// connections. A connection that is silent for too long is closed without an answer. The response's
// Content-Length, Transfer-Encoding and Date are set here; "Connection: close" from the handler
// closes the connection after the response, and so does a streamed answer. A listener that
// upgrade() gave gets no call at all when the WebSocket handshake then fails.
//
// When there are too many connections, a silent or slow one makes room for the newcomer; only when
// all are at work is the newcomer refused. WebSockets (agents) do not count among the connections,
// nor do those of the unix socket among those of TCP.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/limits.h"
#include "base/result.h"
#include "net/tls.h"
#include "net/websocket_options.h"
#include "ports/http.h"

namespace cotenant::net {

struct HttpServerOptions {
  std::string address = "127.0.0.1";  // an IPv4 or IPv6 address
  std::uint16_t port = 0;             // 0: any free one, see port()
  int threads = 2;                    // 1 to 64
  TlsContextPtr tls;                  // null: plain HTTP
  // A unix socket to listen on as well, with mode 0600; empty: none. A socket that nobody listens
  // on is replaced.
  std::string unix_socket;
  // Each is lowered to what the process's limit of open files allows.
  std::size_t connections = base::limits::kHttpConnections;
  std::size_t websockets = base::limits::kWebSockets;
  std::size_t header_bytes = base::limits::kRequestHeaderBytes;
  std::size_t body_bytes = base::limits::kRequestBodyBytes;
  std::chrono::milliseconds idle_timeout{60000};  // until the first byte of the next request
  std::chrono::milliseconds read_timeout{30000};  // from there to the request's end
  std::chrono::milliseconds write_timeout{30000};
  std::chrono::milliseconds stop_grace{1000};  // for responses that are being written at stop()
  WebSocketOptions websocket;
};

class HttpServer {
 public:
  using Options = HttpServerOptions;

  // Errors: kInvalidParameter (address, threads), kUnavailable (cannot listen there; the message
  // says where and why).
  static base::Result<std::unique_ptr<HttpServer>> start(const Options& options,
                                                         ports::HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  std::size_t connections() const;

  // Accepts nobody more, finishes the responses that are being written, closes the WebSockets with
  // a reason (at most 1 s), drops the rest and joins. Safe to call twice.
  void stop();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace cotenant::net
