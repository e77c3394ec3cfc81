// Private to net's .cpp files: one WebSocket, either side. The session lives in its registry until
// on_closed(); the listener's calls run on its strand.
#pragma once

#include <atomic>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/session.h"
#include "net/websocket_options.h"
#include "ports/http.h"

namespace cotenant::net {

// Server side: answers the request to upgrade. A bad request is answered 400 or so, and the
// listener is let go without a call. The socket's executor must be a strand. `open` counts the
// sessions while they live.
void accept_websocket(const std::shared_ptr<SessionRegistry>& sessions, StreamSocket socket,
                      boost::beast::http::request<boost::beast::http::string_body> request,
                      std::shared_ptr<ports::WebSocketListener> listener,
                      const WebSocketOptions& options,
                      std::shared_ptr<std::atomic<std::size_t>> open);

struct WebSocketHandshake {
  std::string host;
  std::string target;
  std::vector<ports::HttpHeader> headers;
};

// Called once: when the server has accepted (just before on_open) or the handshake has failed.
using HandshakeDone = std::function<void(base::Result<std::shared_ptr<ports::WebSocket>>)>;

// Client side, over a connected socket. Returns the session, for shut_down() by way of the
// registry.
std::weak_ptr<Session> open_websocket(const std::shared_ptr<SessionRegistry>& sessions,
                                      StreamSocket socket, WebSocketHandshake handshake,
                                      std::shared_ptr<ports::WebSocketListener> listener,
                                      const WebSocketOptions& options, HandshakeDone done);

}  // namespace cotenant::net
