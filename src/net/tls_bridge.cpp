#include "net/tls_bridge.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "base/log.h"
#include "net/tls_context.h"

namespace cotenant::net {
namespace {

class TlsBridge final : public Session, public std::enable_shared_from_this<TlsBridge> {
 public:
  TlsBridge(std::shared_ptr<SessionRegistry> sessions, StreamSocket encrypted, StreamSocket plain,
            TlsBridgeOptions options, TlsHandshakeDone done)
      : sessions_(std::move(sessions)),
        options_(std::move(options)),
        done_(std::move(done)),
        tls_(std::move(encrypted), options_.context->ssl),
        plain_(std::move(plain)),
        timer_(tls_.get_executor()) {}

  asio::any_io_executor executor() override { return tls_.get_executor(); }
  void shut_down() override {
    if (!handshaken_) return close();
    close_after(kTlsGoodbye);
  }

  // Throws what OpenSSL does not like of the name.
  void prepare() {
    if (options_.server_name.empty()) return;
    ErrorCode no_address;
    asio::ip::make_address(options_.server_name, no_address);
    if (no_address) {  // SNI names hosts, never addresses (RFC 6066, 3)
      SSL_set_tlsext_host_name(tls_.native_handle(), options_.server_name.c_str());
    }
    tls_.set_verify_callback(asio::ssl::host_name_verification(options_.server_name));
  }

  void handshake() {
    close_after(options_.handshake_timeout);
    const bool is_server = options_.server_name.empty();
    tls_.async_handshake(
        is_server ? asio::ssl::stream_base::server : asio::ssl::stream_base::client,
        [self = shared_from_this()](ErrorCode error) { self->on_handshake(error); });
  }

 private:
  void on_handshake(ErrorCode error) {
    if (closed_) return;
    if (error) {
      tell(base::fail(base::ErrorCode::kUnavailable, describe(error)));
      return close();
    }
    handshaken_ = true;
    timer_.cancel();
    tell({});
    read_plain();
    read_tls();
  }

  std::string describe(ErrorCode error) {
    const long verified = SSL_get_verify_result(tls_.native_handle());
    if (!options_.server_name.empty() && verified != X509_V_OK) {
      return fmt::format("TLS: the certificate of {} is not accepted: {}", options_.server_name,
                         X509_verify_cert_error_string(verified));
    }
    return fmt::format("TLS: no handshake: {}", error.message());
  }

  void tell(base::Status outcome) {
    if (auto done = std::exchange(done_, nullptr)) done(std::move(outcome));
  }

  void read_plain() {
    plain_.async_read_some(
        asio::buffer(outgoing_), [self = shared_from_this()](ErrorCode error, std::size_t size) {
          if (self->closed_) return;
          if (error) return self->say_goodbye();
          asio::async_write(self->tls_, asio::buffer(self->outgoing_.data(), size),
                            [self](ErrorCode failed, std::size_t) {
                              if (self->closed_) return;
                              if (failed) return self->close();
                              self->read_plain();
                            });
        });
  }

  void read_tls() {
    tls_.async_read_some(
        asio::buffer(incoming_), [self = shared_from_this()](ErrorCode error, std::size_t size) {
          if (self->closed_) return;
          if (error) return self->end_of_tls();
          asio::async_write(self->plain_, asio::buffer(self->incoming_.data(), size),
                            [self](ErrorCode failed, std::size_t) {
                              if (self->closed_) return;
                              if (failed) return self->close();
                              self->read_tls();
                            });
        });
  }

  // The peer has ended, properly or not; what we still have to say goes out.
  void end_of_tls() {
    if (std::exchange(tls_ended_, true) || plain_ended_) return close();
    ErrorCode ignored;
    plain_.shutdown(asio::socket_base::shutdown_send, ignored);
  }

  void say_goodbye() {
    plain_ended_ = true;
    if (tls_ended_) return close();
    close_after(kTlsGoodbye);
    tls_.async_shutdown([self = shared_from_this()](ErrorCode) { self->close(); });
  }

  void close_after(std::chrono::milliseconds time) {
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this()](ErrorCode cancelled) {
      if (!cancelled) self->close();
    });
  }

  void close() {
    if (std::exchange(closed_, true)) return;
    timer_.cancel();
    ErrorCode ignored;
    tls_.next_layer().close(ignored);
    plain_.close(ignored);
    tell(base::fail(base::ErrorCode::kTimeout, "TLS: no handshake in time"));
    if (sessions_) sessions_->remove(this);
  }

  const std::shared_ptr<SessionRegistry> sessions_;
  const TlsBridgeOptions options_;
  TlsHandshakeDone done_;
  asio::ssl::stream<StreamSocket> tls_;
  StreamSocket plain_;
  asio::steady_timer timer_;
  std::array<char, 16384> outgoing_{};
  std::array<char, 16384> incoming_{};
  bool handshaken_ = false;
  bool plain_ended_ = false;
  bool tls_ended_ = false;
  bool closed_ = false;
};

}  // namespace

base::Result<StreamSocket> bridge_tls(const std::shared_ptr<SessionRegistry>& sessions,
                                      StreamSocket encrypted, asio::any_io_executor plain_executor,
                                      TlsBridgeOptions options, TlsHandshakeDone done) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return base::fail(base::ErrorCode::kUnavailable,
                      fmt::format("TLS: no pair of sockets: {}", std::strerror(errno)));
  }
  const asio::local::stream_protocol protocol;
  const asio::any_io_executor executor = encrypted.get_executor();
  StreamSocket ours(executor, protocol, ends[0]);
  StreamSocket theirs(std::move(plain_executor), protocol, ends[1]);
  try {
    auto bridge = std::make_shared<TlsBridge>(sessions, std::move(encrypted), std::move(ours),
                                              std::move(options), std::move(done));
    bridge->prepare();
    if (sessions && !sessions->add(bridge)) {
      return base::fail(base::ErrorCode::kUnavailable, "TLS: this side is stopping");
    }
    asio::dispatch(executor, [bridge] { bridge->handshake(); });
  } catch (const std::exception& error) {
    return base::fail(base::ErrorCode::kUnavailable, fmt::format("TLS: {}", error.what()));
  }
  return theirs;
}

}  // namespace cotenant::net
