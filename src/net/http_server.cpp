#include "net/http_server.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/http/message_generator.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <cstring>
#include <ctime>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "net/http_message.h"
#include "net/io_runtime.h"
#include "net/ws_session.h"

namespace cotenant::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Stream = beast::basic_stream<asio::generic::stream_protocol, asio::any_io_executor>;
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;
using ListenAddress = asio::generic::stream_protocol::endpoint;

constexpr std::size_t kReadBytes = std::size_t{16} * 1024;
constexpr int kThreadsMax = 64;
// After a refusal the peer may still be sending. Closing now would reset the connection and take
// the answer with it, so what comes is read and thrown away within these bounds.
constexpr std::chrono::milliseconds kLingerTime{2000};
constexpr std::size_t kLingerBytes = std::size_t{16} * 1024 * 1024;
// Connections beyond the limit that are told so; still more are closed at once.
constexpr std::size_t kRefusedConnections = 64;
// Out of file descriptors or the like: accept() would fail again at once.
constexpr std::chrono::milliseconds kAcceptRetry{100};

// IMF-fixdate (RFC 9110, 5.6.7), which SDKs use to correct their clock when they sign.
std::string http_date(std::time_t now) {
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

// An error in the shape that ECS clients read. `message` is our own text, without control
// characters.
ports::HttpResponse error_response(int status, base::ErrorCode code, std::string_view message) {
  std::string escaped;
  for (const char c : message) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  ports::HttpResponse response;
  response.status = status;
  response.headers.push_back({"Content-Type", "application/json"});
  response.body =
      fmt::format(R"({{"__type":"{}","message":"{}"}})", base::error_name(code), escaped);
  return response;
}

ports::HttpRequest to_request(const http::request<http::string_body>& message) {
  ports::HttpRequest request;
  request.method = message.method_string();
  request.target = message.target();
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  return request;
}

class HttpSession final : public Session, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(std::shared_ptr<SessionRegistry> sessions, StreamSocket socket,
              ports::HttpHandler& handler, const HttpServerOptions& options)
      : sessions_(std::move(sessions)),
        handler_(handler),
        options_(options),
        stream_(std::move(socket)),
        stop_timer_(stream_.get_executor()),
        buffer_(options.header_bytes + kReadBytes) {}

  asio::any_io_executor executor() override { return stream_.get_executor(); }
  void shut_down() override;

  void wait_for_request();
  void refuse(int status, base::ErrorCode code, std::string_view message);
  void respond(ports::HttpResponse response);

 private:
  enum class State { kReading, kHandling, kWriting, kLingering, kFinished };

  void read_header();
  void on_header();
  bool check_header();
  void read_body();
  void on_read_error(ErrorCode error);
  void on_request();
  void on_upgrade();
  void write(ports::HttpResponse response);
  void on_written(ErrorCode error);
  void linger();
  void discard();
  void finish();

  const std::shared_ptr<SessionRegistry> sessions_;
  ports::HttpHandler& handler_;
  const HttpServerOptions& options_;
  Stream stream_;
  asio::steady_timer stop_timer_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;

  State state_ = State::kReading;
  // Of the answer to come.
  unsigned version_ = 11;
  bool is_head_ = false;
  bool keep_alive_ = false;
  bool must_linger_ = false;
  std::size_t lingered_bytes_ = 0;
};

// The other end of an HttpResponder. The first answer counts; none until the last copy is gone is
// an answer too.
class Reply {
 public:
  Reply(std::shared_ptr<SessionRegistry> sessions, std::weak_ptr<HttpSession> session)
      : sessions_(std::move(sessions)), session_(std::move(session)) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  ~Reply() {
    give(
        error_response(500, base::ErrorCode::kServer, "the request was dropped without an answer"));
  }

  void give(ports::HttpResponse response) {
    if (given_.exchange(true)) return;
    sessions_->post(session_, [moved = std::move(response)](HttpSession& session) mutable {
      session.respond(std::move(moved));
    });
  }

 private:
  const std::shared_ptr<SessionRegistry> sessions_;
  const std::weak_ptr<HttpSession> session_;
  std::atomic<bool> given_{false};
};

void HttpSession::wait_for_request() {
  if (state_ == State::kFinished) return;
  state_ = State::kReading;
  if (buffer_.size() > 0) return read_header();  // pipelined
  stream_.expires_after(options_.idle_timeout);
  stream_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](ErrorCode error, std::size_t size) {
                            if (error) return self->finish();
                            self->buffer_.commit(size);
                            self->read_header();
                          });
}

void HttpSession::read_header() {
  if (state_ == State::kFinished) return;
  version_ = 11;
  is_head_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(options_.header_bytes));
  parser_->body_limit(options_.body_bytes);
  stream_.expires_after(options_.read_timeout);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](ErrorCode error, std::size_t) {
                            if (error) return self->on_read_error(error);
                            self->on_header();
                          });
}

// False when the request has been refused.
bool HttpSession::check_header() {
  const auto& message = parser_->get();
  // RFC 9112, 3.2: exactly one Host.
  const auto hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() >= 11)) {
    refuse(400, base::ErrorCode::kSerialization, "want exactly one Host header");
    return false;
  }
  const beast::string_view expect = message[http::field::expect];
  if (!expect.empty() && !beast::iequals(expect, "100-continue")) {
    refuse(417, base::ErrorCode::kSerialization, "Expect: only 100-continue is supported");
    return false;
  }
  return true;
}

void HttpSession::on_header() {
  if (state_ == State::kFinished || !check_header()) return;
  const auto& message = parser_->get();
  const bool wants_continue = message.version() >= 11 && message.count(http::field::expect) > 0;
  if (!wants_continue || parser_->is_done()) return read_body();
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(kContinue),
                    [self = shared_from_this()](ErrorCode error, std::size_t) {
                      if (error) return self->finish();
                      self->read_body();
                    });
}

void HttpSession::read_body() {
  if (state_ == State::kFinished) return;
  if (parser_->is_done()) return on_request();
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](ErrorCode error, std::size_t) {
                     if (error) return self->on_read_error(error);
                     self->on_request();
                   });
}

void HttpSession::on_read_error(ErrorCode error) {
  if (state_ == State::kFinished) return;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return refuse(
        431, base::ErrorCode::kInvalidParameter,
        fmt::format("the request's header is larger than {} bytes", options_.header_bytes));
  }
  if (error == http::error::body_limit) {
    return refuse(413, base::ErrorCode::kInvalidParameter,
                  fmt::format("the request's body is larger than {} bytes", options_.body_bytes));
  }
  const bool is_peer_gone =
      error == http::error::end_of_stream || error == http::error::partial_message;
  if (error.category() == http::make_error_code(http::error::bad_method).category() &&
      !is_peer_gone) {
    return refuse(400, base::ErrorCode::kSerialization,
                  fmt::format("malformed HTTP request: {}", error.message()));
  }
  finish();  // closed, reset or timed out: nobody to tell
}

void HttpSession::on_request() {
  if (state_ == State::kFinished) return;
  state_ = State::kHandling;
  stream_.expires_never();
  const auto& message = parser_->get();
  version_ = message.version();
  is_head_ = message.method() == http::verb::head;
  keep_alive_ = message.keep_alive();
  if (beast::websocket::is_upgrade(message)) return on_upgrade();

  ports::HttpRequest request = to_request(message);
  request.body = std::move(parser_->get().body());
  parser_.reset();
  const auto reply = std::make_shared<Reply>(sessions_, weak_from_this());
  try {
    handler_.handle(std::move(request),
                    [reply](ports::HttpResponse response) { reply->give(std::move(response)); });
  } catch (const std::exception& error) {
    base::log::error("net: the handler threw: {}", error.what());
    reply->give(error_response(500, base::ErrorCode::kServer, "the request's handler failed"));
  } catch (...) {
    base::log::error("net: the handler threw something that is no std::exception");
    reply->give(error_response(500, base::ErrorCode::kServer, "the request's handler failed"));
  }
}

void HttpSession::on_upgrade() {
  std::shared_ptr<ports::WebSocketListener> listener;
  try {
    listener = handler_.upgrade(to_request(parser_->get()));
  } catch (...) {
    base::log::error("net: the handler threw in upgrade");
    return refuse(500, base::ErrorCode::kServer, "the request's handler failed");
  }
  if (!listener) return refuse(404, base::ErrorCode::kNotFound, "no WebSocket at this path");
  // The new session is registered before this one leaves, so that a connection always counts.
  accept_websocket(sessions_, stream_.release_socket(), parser_->release(), std::move(listener),
                   options_.websocket);
  finish();
}

void HttpSession::refuse(int status, base::ErrorCode code, std::string_view message) {
  keep_alive_ = false;
  must_linger_ = true;
  write(error_response(status, code, message));
}

void HttpSession::respond(ports::HttpResponse response) {
  if (state_ == State::kHandling) write(std::move(response));
}

void HttpSession::write(ports::HttpResponse response) {
  const base::Status valid = check_headers(response.headers);
  if (response.status < 200 || response.status > 599 || !valid) {
    base::log::error("net: the handler gave an impossible response (status {}): {}",
                     response.status, valid ? "status" : valid.error().message);
    response = error_response(500, base::ErrorCode::kServer, "the request's handler failed");
  }
  state_ = State::kWriting;

  http::response<http::string_body> message;
  message.version(version_);
  message.result(static_cast<unsigned>(response.status));
  for (const ports::HttpHeader& header : response.headers) {
    if (equal_ignoring_case(header.name, "Connection") &&
        equal_ignoring_case(header.value, "close")) {
      keep_alive_ = false;
    }
    if (!is_framing_header(header.name)) message.insert(header.name, header.value);
  }
  message.set(http::field::date, http_date(std::time(nullptr)));
  message.keep_alive(keep_alive_);
  const bool has_no_length = response.status == 204 || response.status == 304;
  if (!has_no_length) message.content_length(response.body.size());

  const auto on_done = [self = shared_from_this()](ErrorCode error, std::size_t) {
    self->on_written(error);
  };
  stream_.expires_after(options_.write_timeout);
  if (is_head_ || has_no_length) {
    http::response<http::empty_body> header(std::move(message.base()));
    beast::async_write(stream_, http::message_generator(std::move(header)), on_done);
  } else {
    message.body() = std::move(response.body);
    beast::async_write(stream_, http::message_generator(std::move(message)), on_done);
  }
}

void HttpSession::on_written(ErrorCode error) {
  if (state_ == State::kFinished) return;
  if (error) return finish();
  if (must_linger_) return linger();
  if (!keep_alive_) {
    ErrorCode ignored;
    stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    return finish();
  }
  wait_for_request();
}

void HttpSession::linger() {
  state_ = State::kLingering;
  ErrorCode ignored;
  stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  stream_.expires_after(kLingerTime);
  discard();
}

void HttpSession::discard() {
  buffer_.clear();
  stream_.async_read_some(
      buffer_.prepare(kReadBytes), [self = shared_from_this()](ErrorCode error, std::size_t size) {
        self->lingered_bytes_ += size;
        if (error || self->state_ == State::kFinished || self->lingered_bytes_ > kLingerBytes) {
          return self->finish();
        }
        self->discard();
      });
}

void HttpSession::shut_down() {
  if (state_ != State::kWriting) return finish();
  keep_alive_ = false;
  must_linger_ = false;
  stop_timer_.expires_after(options_.stop_grace);
  stop_timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error) self->finish();
  });
}

void HttpSession::finish() {
  if (std::exchange(state_, State::kFinished) == State::kFinished) return;
  stop_timer_.cancel();
  stream_.close();
  sessions_->remove(this);
}

// Accepts connections at one address of any kind.
class Listener final : public Session, public std::enable_shared_from_this<Listener> {
 public:
  Listener(IoRuntime& runtime, ports::HttpHandler& handler, const HttpServerOptions& options)
      : runtime_(runtime),
        handler_(handler),
        options_(options),
        acceptor_(asio::any_io_executor(asio::make_strand(runtime.io()))),
        retry_timer_(acceptor_.get_executor()) {}

  asio::any_io_executor executor() override { return acceptor_.get_executor(); }

  ErrorCode open(const ListenAddress& address) {
    ErrorCode error;
    acceptor_.open(address.protocol(), error);
    // A restart must not wait for the last run's connections to leave TIME_WAIT.
    if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_.bind(address, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  ListenAddress address() const { return acceptor_.local_endpoint(); }

  void accept() {
    acceptor_.async_accept(asio::any_io_executor(asio::make_strand(runtime_.io())),
                           [self = shared_from_this()](ErrorCode error, StreamSocket socket) {
                             if (!self->acceptor_.is_open()) return;
                             if (error) return self->retry(error);
                             self->start_session(std::move(socket));
                             self->accept();
                           });
  }

  void shut_down() override {
    ErrorCode ignored;
    acceptor_.close(ignored);
    retry_timer_.cancel();
    runtime_.sessions()->remove(this);
  }

 private:
  void start_session(StreamSocket socket) {
    // The listener is in the registry too.
    const std::size_t connections = runtime_.sessions()->size() - 1;
    if (connections >= options_.connections + kRefusedConnections) return;
    ErrorCode ignored;  // not on a unix socket
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    auto session =
        std::make_shared<HttpSession>(runtime_.sessions(), std::move(socket), handler_, options_);
    if (!runtime_.sessions()->add(session)) return;
    const bool is_full = connections >= options_.connections;
    asio::dispatch(session->executor(), [session, is_full, limit = options_.connections] {
      if (!is_full) return session->wait_for_request();
      session->refuse(503, base::ErrorCode::kThrottling,
                      fmt::format("the server has its limit of {} connections", limit));
    });
  }

  void retry(ErrorCode error) {
    if (error == asio::error::connection_aborted) return accept();  // that peer left again
    base::log::warn("net: cannot accept a connection: {}", error.message());
    retry_timer_.expires_after(kAcceptRetry);
    retry_timer_.async_wait([self = shared_from_this()](ErrorCode cancelled) {
      if (!cancelled && self->acceptor_.is_open()) self->accept();
    });
  }

  IoRuntime& runtime_;
  ports::HttpHandler& handler_;
  const HttpServerOptions& options_;
  Acceptor acceptor_;
  asio::steady_timer retry_timer_;
};

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerOptions& server_options, ports::HttpHandler& handler)
      : options(server_options),
        runtime(options.threads),
        listener(std::make_shared<Listener>(runtime, handler, options)) {}
  // The listener's socket must not outlive the io_context.
  ~Impl() {
    runtime.stop();
    listener.reset();
  }

  const HttpServerOptions options;  // sessions refer to it
  IoRuntime runtime;
  std::shared_ptr<Listener> listener;
  std::uint16_t port = 0;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  stop();
}

base::Result<std::unique_ptr<HttpServer>> HttpServer::start(const Options& options,
                                                            ports::HttpHandler& handler) {
  if (options.threads < 1 || options.threads > kThreadsMax) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("HTTP server: threads: want 1 to {}, got {}", kThreadsMax, options.threads));
  }
  ErrorCode error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("HTTP server: address '{}': want an IP address, such as 127.0.0.1",
                    options.address));
  }
  try {
    auto impl = std::make_unique<Impl>(options, handler);
    error = impl->listener->open(asio::ip::tcp::endpoint(address, options.port));
    if (error) {
      return base::fail(base::ErrorCode::kUnavailable,
                        fmt::format("HTTP server: cannot listen on {} port {}: {}", options.address,
                                    options.port, error.message()));
    }
    asio::ip::tcp::endpoint bound;
    const ListenAddress generic = impl->listener->address();
    bound.resize(generic.size());
    std::memcpy(bound.data(), generic.data(), generic.size());
    impl->port = bound.port();
    impl->runtime.sessions()->add(impl->listener);
    asio::dispatch(impl->listener->executor(), [listener = impl->listener] { listener->accept(); });
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
  } catch (const std::exception& failure) {
    return base::fail(base::ErrorCode::kUnavailable,
                      fmt::format("HTTP server: cannot start: {}", failure.what()));
  }
}

std::uint16_t HttpServer::port() const {
  return impl_->port;
}

std::size_t HttpServer::connections() const {
  const std::size_t sessions = impl_->runtime.sessions()->size();
  return sessions == 0 ? 0 : sessions - 1;  // without the listener
}

void HttpServer::stop() {
  impl_->runtime.stop();
}

}  // namespace cotenant::net
