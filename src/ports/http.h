// HTTP as the shells see it: servers and clients. Implemented by net/.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "ports/byte_stream.h"
#include "ports/http_body.h"
#include "ports/http_message.h"
#include "ports/web_socket.h"

namespace cotenant::ports {

// Called exactly once, from any thread.
using HttpResponder = std::function<void(HttpResponse)>;

// The answer to a request to upgrade to a WebSocket: a listener accepts it, a response refuses it.
using HttpUpgrade = tl::expected<std::shared_ptr<WebSocketListener>, HttpResponse>;

// Called exactly once, from any thread.
using HttpUpgradeResponder = std::function<void(HttpUpgrade)>;

// What an HTTP server asks of its application. Calls come from several threads at once and must not
// block.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void handle(HttpRequest request, HttpResponder respond) = 0;
  virtual void upgrade(HttpRequest request, HttpUpgradeResponder respond) = 0;
};

// A client bound to one server (a TCP address or a unix socket). Any thread; each call has its own
// connection. Errors: kUnavailable (cannot connect), kTimeout, kProtocol, kIo.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual base::Result<HttpResponse> send(const HttpRequest& request,
                                          std::chrono::milliseconds timeout) const = 0;
  // Hands each piece of an endless body to `on_data` until the server ends it (success), `stop` is
  // requested (success) or the connection breaks. A status other than 200 is kProtocol.
  virtual base::Status stream(const HttpRequest& request,
                              const std::function<void(std::string_view)>& on_data,
                              std::stop_token stop) const = 0;
  // For a long answer with an end: a 200's body goes to `on_data` piece by piece, and the response
  // comes back without it; another status comes back with its body (its beginning). Requested stop:
  // kUnavailable.
  virtual base::Result<HttpResponse> receive(const HttpRequest& request,
                                             const std::function<void(std::string_view)>& on_data,
                                             std::stop_token stop) const = 0;
  // Asks for a connection that carries bytes both ways ("Upgrade: tcp") after the answer 101 or 200.
  // Another status comes back as the response. Errors also: kInvalidParameter, an https endpoint.
  virtual base::Result<std::variant<std::unique_ptr<ByteStream>, HttpResponse>> upgrade(
      const HttpRequest& request, std::chrono::milliseconds timeout) const = 0;
};

}  // namespace cotenant::ports
