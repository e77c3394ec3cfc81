// The client side of WebSockets (the agent's connection to its server).
//
// A WebSocketClient owns one thread, on which all listeners of its sockets are called. Any thread
// may call connect(), except that thread (a listener must not connect). The destructor closes the
// sockets with a reason, waits for their on_closed() (at most about 1 s) and joins; it must not run
// on that thread either. WebSockets may outlive the client: they then do nothing.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/tls.h"
#include "net/websocket_options.h"
#include "ports/http.h"

namespace cotenant::net {

class IoRuntime;

class WebSocketClient {
 public:
  // `ca_certificate`: a PEM file, for https endpoints; empty: the system's. Errors: kUnavailable (no
  // thread), kInvalidParameter (the file).
  static base::Result<std::unique_ptr<WebSocketClient>> create(
      const std::string& ca_certificate = "");
  ~WebSocketClient();
  WebSocketClient(const WebSocketClient&) = delete;
  WebSocketClient& operator=(const WebSocketClient&) = delete;

  // Connects to "http(s)://host:port" or "unix:///path" and upgrades there at `target`; `headers` go
  // with the request. options.handshake_timeout covers all of it; `stop` ends it early
  // (kUnavailable). On success the listener gets on_open() (maybe before this returns), on_text()
  // and at last, once, on_closed(); on an error it gets no call. Errors: kInvalidParameter,
  // kUnavailable, kTimeout, kProtocol (the server refused; the message has its status), kIo.
  base::Result<std::shared_ptr<ports::WebSocket>> connect(
      std::string_view endpoint, const std::string& target,
      std::shared_ptr<ports::WebSocketListener> listener, const WebSocketOptions& options = {},
      const std::vector<ports::HttpHeader>& headers = {}, std::stop_token stop = {});

 private:
  WebSocketClient(std::unique_ptr<IoRuntime> runtime, TlsContextPtr tls);

  std::unique_ptr<IoRuntime> runtime_;
  const TlsContextPtr tls_;
};

}  // namespace cotenant::net
