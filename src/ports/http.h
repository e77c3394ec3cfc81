// HTTP as the shells see it. Implemented by net/.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cotenant::ports {

struct HttpHeader {
  std::string name;
  std::string value;
};

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  std::vector<HttpHeader> headers;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::vector<HttpHeader> headers;
  std::string body;
};

// The value of the first header of that name (names compare without case), else an empty view.
std::string_view header_value(const std::vector<HttpHeader>& headers, std::string_view name);

bool has_header(const std::vector<HttpHeader>& headers, std::string_view name);

// Called exactly once, from any thread.
using HttpResponder = std::function<void(HttpResponse)>;

// One side of an open WebSocket that carries text frames. Any thread may send or close.
class WebSocket {
 public:
  virtual ~WebSocket() = default;
  // Queues one text frame; frames go out in order. After close() it does nothing.
  virtual void send(std::string text) = 0;
  // Closes with this reason (at most 120 bytes go out). on_closed still follows, once.
  virtual void close(std::string reason) = 0;
};

// What a WebSocket tells its owner. Calls of one socket never overlap.
class WebSocketListener {
 public:
  virtual ~WebSocketListener() = default;
  virtual void on_open(std::shared_ptr<WebSocket> socket) = 0;
  virtual void on_text(std::string_view text) = 0;
  // The last call. The reason is for a log line.
  virtual void on_closed(std::string_view reason) = 0;
};

// What an HTTP server asks of its application. Calls come from several threads at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void handle(HttpRequest request, HttpResponder respond) = 0;
  // A request to upgrade to a WebSocket: a listener accepts, null answers 404.
  virtual std::shared_ptr<WebSocketListener> upgrade(const HttpRequest& request) = 0;
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
};

}  // namespace cotenant::ports
