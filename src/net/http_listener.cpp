#include "net/http_listener.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/strand.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "net/http_answer.h"
#include "net/tls_bridge.h"

namespace cotenant::net {
namespace {

// Connections beyond the limit that are told so; still more are closed at once.
constexpr std::size_t kRefusedConnections = 64;
constexpr std::chrono::milliseconds kTlsHandshakeTime{10000};
// Out of file descriptors or the like: accept() would fail again at once.
constexpr std::chrono::milliseconds kAcceptRetry{100};
// A peer that vanished without a word (power, cable) is noticed after about a minute.
constexpr int kKeepAliveIdleSeconds = 30;
constexpr int kKeepAliveIntervalSeconds = 10;
constexpr int kKeepAliveProbes = 3;

void set_tcp_options(int fd) {
  // All of these only help, so that what they answer does not matter.
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

// Whether somebody accepts at this unix address.
bool is_served(const HttpListener::Address& address) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const int outcome = ::connect(fd, address.data(), static_cast<socklen_t>(address.size()));
  const bool served = outcome == 0 || errno == EAGAIN || errno == EINPROGRESS;
  ::close(fd);
  return served;
}

}  // namespace

HttpListener::HttpListener(asio::io_context& io, const HttpSessionContext& context)
    : io_(io),
      context_(context),
      acceptor_(asio::any_io_executor(asio::make_strand(io))),
      retry_timer_(acceptor_.get_executor()) {}

HttpListener::~HttpListener() {
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

ErrorCode HttpListener::open(const Address& address) {
  ErrorCode error;
  acceptor_.open(address.protocol(), error);
  // A restart must not wait for the last run's connections to leave TIME_WAIT.
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(address, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

base::Status HttpListener::open_unix(const std::string& path) {
  const auto refuse = [&](std::string_view why) {
    return base::fail(base::ErrorCode::kUnavailable,
                      fmt::format("HTTP server: cannot listen on {}: {}", path, why));
  };
  if (path.size() >= sizeof(sockaddr_un{}.sun_path)) {
    return refuse(fmt::format("a unix socket's path has at most {} bytes",
                              sizeof(sockaddr_un{}.sun_path) - 1));
  }
  const Address address = asio::local::stream_protocol::endpoint(path);
  struct stat present {};
  if (::lstat(path.c_str(), &present) == 0) {
    if (!S_ISSOCK(present.st_mode)) return refuse("something that is no socket lies there");
    if (is_served(address)) return refuse("another process listens there");
    ::unlink(path.c_str());
  }
  ErrorCode error;
  acceptor_.open(address.protocol(), error);
  // Before bind, so that there is no moment in which others may connect (Linux takes a new socket
  // file's mode from the socket); the process's umask is shared with other threads.
  if (!error) ::fchmod(acceptor_.native_handle(), S_IRUSR | S_IWUSR);
  if (!error) acceptor_.bind(address, error);
  if (error) return refuse(error.message());
  unix_path_ = path;
  acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return refuse(error.message());
  return {};
}

void HttpListener::accept() {
  acceptor_.async_accept(asio::any_io_executor(asio::make_strand(io_)),
                         [self = shared_from_this()](ErrorCode error, StreamSocket socket) {
                           if (!self->acceptor_.is_open()) return;
                           if (error) return self->retry(error);
                           self->start_session(std::move(socket));
                           self->accept();
                         });
}

void HttpListener::shut_down() {
  ErrorCode ignored;
  acceptor_.close(ignored);
  retry_timer_.cancel();
  context_.sessions->remove(this);
}

ports::HttpPeer HttpListener::peer_of(StreamSocket& socket) const {
  ports::HttpPeer peer;
  if (!unix_path_.empty()) {
    peer.address = "unix";
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
      peer.user = credentials.uid;
    }
    return peer;
  }
  ErrorCode error;
  const Address generic = socket.remote_endpoint(error);
  if (error) return peer;
  asio::ip::tcp::endpoint address;
  address.resize(generic.size());
  std::memcpy(address.data(), generic.data(), generic.size());
  peer.address = address.address().to_string();
  return peer;
}

void HttpListener::start_session(StreamSocket socket) {
  const std::size_t limit = context_.options.connections;
  if (unix_path_.empty()) set_tcp_options(socket.native_handle());
  bool is_full = table_->size() >= limit;
  if (is_full) {
    const std::weak_ptr<HttpSession> victim = table_->take_victim(SteadyClock::now());
    is_full = victim.expired();
    context_.sessions->post(victim, [](HttpSession& session) { session.give_way(); });
  }
  if (table_->size() >= limit + kRefusedConnections) return;
  ports::HttpPeer peer = peer_of(socket);
  if (context_.options.tls != nullptr && unix_path_.empty()) {
    peer.is_encrypted = true;
    auto plain = bridge_tls(context_.sessions, std::move(socket),
                            asio::any_io_executor(asio::make_strand(io_)),
                            {context_.options.tls, "", kTlsHandshakeTime},
                            [address = peer.address](base::Status status) {
                              if (!status)
                                base::log::debug("net: {}: {}", address, status.error().message);
                            });
    if (!plain) return;
    socket = std::move(*plain);
  }
  auto session =
      std::make_shared<HttpSession>(context_, table_, std::move(socket), std::move(peer));
  if (!context_.sessions->add(session)) return;
  // Counted at once, not when its strand gets there.
  table_->note(session.get(), session, is_full ? Activity::kBusy : Activity::kWaiting,
               SteadyClock::now());
  asio::dispatch(session->executor(), [session, is_full, limit] {
    if (!is_full) return session->wait_for_request();
    session->refuse(503, base::ErrorCode::kThrottling,
                    fmt::format("the server has its limit of {} connections", limit));
  });
}

void HttpListener::retry(ErrorCode error) {
  if (error == asio::error::connection_aborted) return accept();  // that peer left again
  base::log::warn("net: cannot accept a connection: {}", error.message());
  retry_timer_.expires_after(kAcceptRetry);
  retry_timer_.async_wait([self = shared_from_this()](ErrorCode cancelled) {
    if (!cancelled && self->acceptor_.is_open()) self->accept();
  });
}

}  // namespace cotenant::net
