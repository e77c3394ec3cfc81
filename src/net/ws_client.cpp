#include "net/ws_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/strand.hpp>
#include <exception>
#include <functional>
#include <future>
#include <system_error>
#include <utility>

#include "net/blocking_io.h"
#include "net/http_message.h"
#include "net/io_runtime.h"
#include "net/tls_bridge.h"
#include "net/ws_session.h"

namespace cotenant::net {

using Connected = base::Result<std::shared_ptr<ports::WebSocket>>;

namespace {

// TLS over a connected socket, on the client's threads; blocks until the handshake is done.
base::Result<StreamSocket> secured(IoRuntime& runtime, StreamSocket socket,
                                   const Endpoint& endpoint, const TlsContextPtr& tls,
                                   std::chrono::milliseconds timeout) {
  auto outcome = std::make_shared<std::promise<base::Status>>();
  std::future<base::Status> future = outcome->get_future();
  auto plain = bridge_tls(
      runtime.sessions(), std::move(socket), asio::any_io_executor(asio::make_strand(runtime.io())),
      {tls, endpoint.host, timeout},
      [outcome](base::Status status) { outcome->set_value(std::move(status)); });
  if (!plain) return plain;
  if (base::Status status = future.get(); !status) return base::fail(std::move(status).error());
  return plain;
}

}  // namespace

base::Result<std::unique_ptr<WebSocketClient>> WebSocketClient::create(
    const std::string& ca_certificate) {
  auto tls = load_client_tls(ca_certificate);
  if (!tls) return base::fail(std::move(tls).error());
  try {
    return std::unique_ptr<WebSocketClient>(
        new WebSocketClient(std::make_unique<IoRuntime>(/*threads=*/1), std::move(*tls)));
  } catch (const std::exception& error) {
    return base::fail(base::ErrorCode::kUnavailable,
                      fmt::format("cannot start a WebSocket client: {}", error.what()));
  }
}

WebSocketClient::WebSocketClient(std::unique_ptr<IoRuntime> runtime, TlsContextPtr tls)
    : runtime_(std::move(runtime)), tls_(std::move(tls)) {}

WebSocketClient::~WebSocketClient() = default;

Connected WebSocketClient::connect(std::string_view endpoint, const std::string& target,
                                   std::shared_ptr<ports::WebSocketListener> listener,
                                   const WebSocketOptions& options,
                                   const std::vector<ports::HttpHeader>& headers,
                                   std::stop_token stop) {
  const base::Result<Endpoint> parsed = parse_endpoint(endpoint);
  if (!parsed) return base::fail(parsed.error());
  ports::HttpRequest request;
  request.target = target;
  request.headers = headers;
  if (auto valid = check_request(request); !valid) return base::fail(std::move(valid).error());

  try {
    const SteadyClock::time_point deadline = SteadyClock::now() + options.handshake_timeout;
    BlockingIo connecting(stop);
    connecting.set_deadline(deadline);
    if (auto connected = connecting.connect(*parsed); !connected) {
      return base::fail(std::move(connected).error());
    }
    // The connection moves from this call's io_context to the client's.
    const asio::generic::stream_protocol protocol = connecting.socket().local_endpoint().protocol();
    StreamSocket socket(asio::any_io_executor(asio::make_strand(runtime_->io())));
    socket.assign(protocol, connecting.socket().release());

    const auto time_left = [deadline] {
      return std::max(
          std::chrono::milliseconds(1),
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now()));
    };
    if (parsed->is_tls) {
      auto plain = secured(*runtime_, std::move(socket), *parsed, tls_, time_left());
      if (!plain) {
        return base::fail(plain.error().code,
                          fmt::format("{}: {}", parsed->text, plain.error().message));
      }
      socket = std::move(*plain);
    }
    WebSocketOptions remaining = options;
    remaining.handshake_timeout = time_left();
    auto outcome = std::make_shared<std::promise<Connected>>();
    std::future<Connected> future = outcome->get_future();
    const std::weak_ptr<Session> session = open_websocket(
        runtime_->sessions(), std::move(socket), {parsed->host_header(), target, headers},
        std::move(listener), remaining,
        [outcome](Connected connected) { outcome->set_value(std::move(connected)); });
    const std::stop_callback on_stop(std::move(stop), [&] {
      runtime_->sessions()->post(session, [](Session& opening) { opening.shut_down(); });
    });
    Connected connected = future.get();
    if (!connected) {
      connected.error().message =
          fmt::format("{}{}: {}", parsed->text, target, connected.error().message);
    }
    return connected;
  } catch (const std::exception& error) {
    return base::fail(base::ErrorCode::kIo, fmt::format("{}: {}", parsed->text, error.what()));
  }
}

}  // namespace cotenant::net
