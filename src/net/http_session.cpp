#include "net/http_session.h"

#include <fmt/format.h>

#include <boost/asio/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <exception>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "net/http_answer.h"
#include "net/ws_session.h"

namespace cotenant::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kReadBytes = std::size_t{16} * 1024;

ports::HttpResponse handler_failed() {
  return error_response(500, base::ErrorCode::kServer, "the request's handler failed");
}

// The other end of a responder. The first answer counts; none until the last copy is gone is an
// answer too.
template <class Answer>
class Reply {
 public:
  using Deliver = void (HttpSession::*)(Answer);

  Reply(std::shared_ptr<SessionRegistry> sessions, std::weak_ptr<HttpSession> session,
        Deliver deliver)
      : sessions_(std::move(sessions)), session_(std::move(session)), deliver_(deliver) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  ~Reply() {
    give_error(
        error_response(500, base::ErrorCode::kServer, "the request was dropped without an answer"));
  }

  void give(Answer answer) {
    if (given_.exchange(true)) return;
    sessions_->post(session_,
                    [deliver = deliver_, moved = std::move(answer)](HttpSession& session) mutable {
                      (session.*deliver)(std::move(moved));
                    });
  }
  void give_error(ports::HttpResponse response) {
    if constexpr (std::is_same_v<Answer, ports::HttpResponse>) {
      give(std::move(response));
    } else {
      give(tl::unexpected<ports::HttpResponse>(std::move(response)));
    }
  }

 private:
  const std::shared_ptr<SessionRegistry> sessions_;
  const std::weak_ptr<HttpSession> session_;
  const Deliver deliver_;
  std::atomic<bool> given_{false};
};

// call(responder), with whatever it throws turned into an answer.
template <class Answer, class Call>
void ask_handler(const std::shared_ptr<Reply<Answer>>& reply, Call call) {
  try {
    call([reply](Answer answer) { reply->give(std::move(answer)); });
  } catch (const std::exception& error) {
    base::log::error("net: the handler threw: {}", error.what());
    reply->give_error(handler_failed());
  } catch (...) {
    base::log::error("net: the handler threw something that is no std::exception");
    reply->give_error(handler_failed());
  }
}

}  // namespace

HttpSession::HttpSession(const HttpSessionContext& context, std::shared_ptr<ConnectionTable> table,
                         StreamSocket socket, ports::HttpPeer peer)
    : context_(context),
      table_(std::move(table)),
      peer_(std::move(peer)),
      stream_(std::move(socket)),
      stop_timer_(stream_.get_executor()),
      buffer_(context.options.header_bytes + kReadBytes) {}

void HttpSession::note(Activity activity) {
  table_->note(this, weak_from_this(), activity, SteadyClock::now());
}

void HttpSession::wait_for_request() {
  if (state_ == State::kFinished) return;
  state_ = State::kReading;
  if (buffer_.size() > 0) return read_header();  // pipelined
  note(Activity::kWaiting);
  stream_.expires_after(context_.options.idle_timeout);
  stream_.async_read_some(buffer_.prepare(kReadBytes),
                          [self = shared_from_this()](ErrorCode error, std::size_t size) {
                            if (error) return self->finish();
                            self->buffer_.commit(size);
                            self->read_header();
                          });
}

void HttpSession::read_header() {
  if (state_ == State::kFinished) return;
  note(Activity::kReading);
  version_ = 11;
  is_head_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(context_.options.header_bytes));
  parser_->body_limit(context_.options.body_bytes);
  stream_.expires_after(context_.options.read_timeout);
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
        fmt::format("the request's header is larger than {} bytes", context_.options.header_bytes));
  }
  if (error == http::error::body_limit) {
    return refuse(
        413, base::ErrorCode::kInvalidParameter,
        fmt::format("the request's body is larger than {} bytes", context_.options.body_bytes));
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
  note(Activity::kBusy);
  stream_.expires_never();
  const auto& message = parser_->get();
  version_ = message.version();
  is_head_ = message.method() == http::verb::head;
  keep_alive_ = message.keep_alive();
  if (beast::websocket::is_upgrade(message)) return on_upgrade();

  ports::HttpRequest request = to_request(message);
  request.body = std::move(parser_->get().body());
  request.peer = peer_;
  parser_.reset();
  const auto reply = std::make_shared<Reply<ports::HttpResponse>>(
      context_.sessions, weak_from_this(), &HttpSession::respond);
  ask_handler(reply, [&](ports::HttpResponder respond) {
    context_.handler.handle(std::move(request), std::move(respond));
  });
}

void HttpSession::on_upgrade() {
  state_ = State::kUpgrading;
  if (*context_.websockets >= context_.options.websockets) {
    return refuse(
        503, base::ErrorCode::kThrottling,
        fmt::format("the server has its limit of {} WebSockets", context_.options.websockets));
  }
  ports::HttpRequest request = to_request(parser_->get());
  request.peer = peer_;
  const auto reply = std::make_shared<Reply<ports::HttpUpgrade>>(
      context_.sessions, weak_from_this(), &HttpSession::answer_upgrade);
  ask_handler(reply, [&](ports::HttpUpgradeResponder respond) {
    context_.handler.upgrade(std::move(request), std::move(respond));
  });
}

void HttpSession::answer_upgrade(ports::HttpUpgrade answer) {
  if (state_ != State::kUpgrading) return;
  if (answer && !*answer) answer = tl::unexpected<ports::HttpResponse>(handler_failed());
  if (!answer) {
    keep_alive_ = false;
    must_linger_ = true;
    return write(std::move(answer).error());
  }
  // The new session is registered before this one leaves, so that a connection always counts.
  accept_websocket(context_.sessions, stream_.release_socket(), parser_->release(),
                   std::move(*answer), context_.options.websocket, context_.websockets);
  finish();
}

void HttpSession::give_way() {
  if (state_ == State::kReading) finish();
}

void HttpSession::shut_down() {
  if (state_ == State::kStreaming) return finish("this server is stopping");
  if (state_ != State::kWriting) return finish();
  keep_alive_ = false;
  must_linger_ = false;
  stop_timer_.expires_after(context_.options.stop_grace);
  stop_timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error) self->finish();
  });
}

void HttpSession::finish(std::string_view reason) {
  if (std::exchange(state_, State::kFinished) == State::kFinished) return;
  stop_timer_.cancel();
  stream_.close();
  table_->remove(this);
  end_body(reason);
  context_.sessions->remove(this);
}

}  // namespace cotenant::net
