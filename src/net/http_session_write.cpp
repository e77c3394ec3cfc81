// How an HttpSession answers.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/asio/write.hpp>
#include <boost/beast/http/message_generator.hpp>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "net/http_answer.h"
#include "net/http_message.h"
#include "net/http_session.h"

namespace cotenant::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::size_t kDiscardBytes = std::size_t{16} * 1024;
// After a refusal the peer may still be sending. Closing now would reset the connection and take
// the answer with it, so what comes is read and thrown away within these bounds.
constexpr std::chrono::milliseconds kLingerTime{2000};
constexpr std::size_t kLingerBytes = std::size_t{16} * 1024 * 1024;

// What the producer of a body holds.
class BodyWriter final : public ports::HttpBodyWriter {
 public:
  BodyWriter(std::shared_ptr<SessionRegistry> sessions, std::weak_ptr<HttpSession> session,
             std::shared_ptr<HttpBodyQueue> queue)
      : sessions_(std::move(sessions)), session_(std::move(session)), queue_(std::move(queue)) {}
  // A producer that is gone can finish nothing.
  ~BodyWriter() override { wake(queue_->abort("its producer is gone")); }

  void write(std::string piece) override { wake(queue_->write(std::move(piece))); }
  std::size_t queued_bytes() const override { return queue_->bytes(); }
  void finish() override { wake(queue_->finish()); }
  void abort(std::string reason) override { wake(queue_->abort(std::move(reason))); }

 private:
  void wake(bool needed) {
    if (needed) sessions_->post(session_, [](HttpSession& session) { session.pump_body(); });
  }

  const std::shared_ptr<SessionRegistry> sessions_;
  const std::weak_ptr<HttpSession> session_;
  const std::shared_ptr<HttpBodyQueue> queue_;
};

// What a listener throws must not end the I/O thread.
template <class Call>
void tell(Call call) {
  try {
    call();
  } catch (...) {
    base::log::error("net: the listener of a streamed answer threw");
  }
}

}  // namespace

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
  body_listener_ = std::move(response.stream);
  if (response.status < 200 || response.status > 599 || !valid) {
    base::log::error("net: the handler gave an impossible response (status {}): {}",
                     response.status, valid ? "status" : valid.error().message);
    end_body("its header cannot be sent");
    response = error_response(500, base::ErrorCode::kServer, "the request's handler failed");
  }
  state_ = State::kWriting;
  note(Activity::kBusy);
  const bool has_no_length = response.status == 204 || response.status == 304;
  if (body_listener_ && (is_head_ || has_no_length)) end_body("this answer has no body");

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

  const auto on_done = [self = shared_from_this()](ErrorCode error, std::size_t) {
    self->on_written(error);
  };
  if (body_listener_) {
    // A streamed answer is its connection's last: it may take hours.
    keep_alive_ = false;
    message.keep_alive(false);
    if (version_ >= 11) message.chunked(true);
    body_queue_ = std::make_shared<HttpBodyQueue>();
    body_queue_->write(std::move(response.body));
    stream_.expires_after(context_.options.write_timeout);
    // beast would end a chunked body after the header, so the header's bytes go out as they are.
    chunk_ = fmt::format("{}", fmt::streamed(message.base()));
    asio::async_write(stream_, asio::buffer(chunk_), on_done);
    return;
  }
  message.keep_alive(keep_alive_);
  if (!has_no_length) message.content_length(response.body.size());
  stream_.expires_after(context_.options.write_timeout);
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
  if (error) return finish(error.message());
  if (body_listener_) return start_body();
  if (must_linger_) return linger();
  if (!keep_alive_) {
    ErrorCode ignored;
    stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    return finish();
  }
  wait_for_request();
}

void HttpSession::start_body() {
  state_ = State::kStreaming;
  stream_.expires_never();
  watch_peer();
  tell([&] {
    body_listener_->on_open(
        std::make_shared<BodyWriter>(context_.sessions, weak_from_this(), body_queue_));
  });
  pump_body();
}

// A body may have nothing to say for hours: a peer that leaves is noticed by reading.
void HttpSession::watch_peer() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kDiscardBytes),
                          [self = shared_from_this()](ErrorCode error, std::size_t size) {
                            if (self->state_ != State::kStreaming) return;
                            if (error) return self->finish("the peer has left");
                            self->discarded_bytes_ += size;
                            if (self->discarded_bytes_ > kLingerBytes) {
                              return self->finish("the peer sends what nobody asked for");
                            }
                            self->watch_peer();
                          });
}

void HttpSession::pump_body() {
  if (state_ != State::kStreaming) return;
  if (is_chunk_going_out_) {
    if (const auto why = body_queue_->overflow()) break_off(*why);
    return;
  }
  HttpBodyQueue::Next next = body_queue_->take();
  if (next.broken) return break_off(*next.broken);
  if (next.data.empty() && !next.is_last) return;
  const std::size_t counted = next.data.size();
  write_chunk(std::move(next.data), counted, next.is_last);
}

// Without the last chunk (with HTTP/1.0: with a reset), the peer sees that something is missing.
void HttpSession::break_off(std::string_view reason) {
  ErrorCode ignored;
  stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  finish(reason);
}

void HttpSession::write_chunk(std::string data, std::size_t counted, bool is_last) {
  const bool is_chunked = version_ >= 11;
  chunk_ = std::move(data);
  if (is_chunked && counted > 0) chunk_ = fmt::format("{:x}\r\n{}\r\n", counted, chunk_);
  if (is_chunked && is_last) chunk_ += "0\r\n\r\n";
  is_chunk_going_out_ = true;
  stream_.expires_after(context_.options.write_timeout);
  asio::async_write(stream_, asio::buffer(chunk_),
                    [self = shared_from_this(), counted, is_last](ErrorCode error, std::size_t) {
                      self->is_chunk_going_out_ = false;
                      if (self->state_ != State::kStreaming) return;
                      if (error) {
                        return self->finish(error == beast::error::timeout
                                                ? "the peer reads too slowly"
                                                : error.message());
                      }
                      if (is_last) {
                        self->end_body("complete");
                        ErrorCode ignored;
                        self->stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
                        return self->finish();
                      }
                      if (self->body_queue_->written(counted)) {
                        tell([&] { self->body_listener_->on_drained(); });
                      }
                      self->pump_body();
                    });
}

void HttpSession::end_body(std::string_view reason) {
  if (body_queue_) body_queue_->close();
  if (const auto listener = std::exchange(body_listener_, nullptr)) {
    tell([&] { listener->on_closed(reason); });
  }
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
  stream_.async_read_some(buffer_.prepare(kDiscardBytes), [self = shared_from_this()](
                                                              ErrorCode error, std::size_t size) {
    self->discarded_bytes_ += size;
    if (error || self->state_ == State::kFinished || self->discarded_bytes_ > kLingerBytes) {
      return self->finish();
    }
    self->discard();
  });
}

}  // namespace cotenant::net
