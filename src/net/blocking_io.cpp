#include "net/blocking_io.h"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <optional>
#include <string>
#include <utility>

#include "net/tls_bridge.h"

namespace cotenant::net {

using asio::ip::tcp;

void BlockingIo::abort() {
  ErrorCode ignored;
  resolver_.cancel();
  socket_.close(ignored);
}

base::Status BlockingIo::failure(const Endpoint& endpoint, ErrorCode error) const {
  if (time_is_up_) {
    return base::fail(base::ErrorCode::kTimeout,
                      fmt::format("{}: no connection in time", endpoint.text));
  }
  return base::fail(
      base::ErrorCode::kUnavailable,
      fmt::format("{}: cannot connect: {}", endpoint.text, stopped_ ? "stopped" : error.message()));
}

base::Result<std::vector<BlockingIo::Address>> BlockingIo::resolve(const Endpoint& endpoint) {
  if (endpoint.kind == Endpoint::Kind::kUnix) {
    return std::vector<Address>{asio::local::stream_protocol::endpoint(endpoint.path)};
  }
  ErrorCode error;
  const asio::ip::address literal = asio::ip::make_address(endpoint.host, error);
  if (!error) return std::vector<Address>{tcp::endpoint(literal, endpoint.port)};

  std::vector<Address> found;
  error = await([&](auto handler) {
    resolver_.async_resolve(
        endpoint.host, std::to_string(endpoint.port), tcp::resolver::numeric_service,
        [&found, handler](ErrorCode outcome, const tcp::resolver::results_type& results) mutable {
          for (const auto& entry : results) found.emplace_back(entry.endpoint());
          handler(outcome);
        });
  });
  if (error) return base::fail(failure(endpoint, error).error());
  return found;
}

base::Status BlockingIo::connect(const Endpoint& endpoint) {
  const base::Result<std::vector<Address>> addresses = resolve(endpoint);
  if (!addresses) return base::fail(addresses.error());
  ErrorCode error = asio::error::host_not_found;
  for (const Address& address : *addresses) {
    error = await([&](auto handler) { socket_.async_connect(address, handler); });
    if (!error) {
      if (endpoint.kind == Endpoint::Kind::kTcp) {
        // Both only help: small requests go out at once, a vanished host is noticed some day.
        ErrorCode ignored;
        socket_.set_option(tcp::no_delay(true), ignored);
        socket_.set_option(asio::socket_base::keep_alive(true), ignored);
      }
      return {};
    }
    if (stopped_ || time_is_up_) break;
    ErrorCode ignored;
    socket_.close(ignored);
  }
  return failure(endpoint, error);
}

base::Status BlockingIo::secure(const Endpoint& endpoint, const TlsContextPtr& tls) {
  std::optional<base::Status> outcome;
  // Our own deadline ends the handshake; the bridge's is only there to end at all.
  TlsBridgeOptions options{tls, endpoint.host, std::chrono::hours(1)};
  const ErrorCode error = await([&](auto handler) {
    auto plain = bridge_tls(nullptr, std::move(socket_), io_.get_executor(), std::move(options),
                            [&outcome, handler](base::Status status) mutable {
                              outcome = std::move(status);
                              handler(ErrorCode());
                            });
    if (plain) {
      socket_ = std::move(*plain);
    } else {
      outcome = base::fail(plain.error());
      handler(ErrorCode());
    }
  });
  if (stopped_ || time_is_up_) return failure(endpoint, error);
  if (!outcome || *outcome) return error ? failure(endpoint, error) : base::Status();
  return base::fail(outcome->error().code,
                    fmt::format("{}: {}", endpoint.text, outcome->error().message));
}

}  // namespace cotenant::net
