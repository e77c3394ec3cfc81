#include "net/ws_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/rate_policy.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "net/ws_outbox.h"

namespace cotenant::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using TimePoint = SteadyClock::time_point;
using UpgradeRequest = http::request<http::string_body>;

// A close frame has 125 bytes, 2 of them for the code (RFC 6455, 5.5); ports::WebSocket promises
// 120.
constexpr std::size_t kCloseReasonBytes = 120;
// Written messages are cut into frames of this size, so that pings can go out in between.
constexpr std::size_t kWriteFrameBytes = std::size_t{16} * 1024;
// A read buffer that one large message has made larger than this is given back.
constexpr std::size_t kIdleBufferBytes = std::size_t{64} * 1024;
// At most kCloseReasonBytes and no character cut in two: the peer must check that it is UTF-8.
std::string_view cut_reason(std::string_view reason) {
  if (reason.size() <= kCloseReasonBytes) return reason;
  std::size_t end = kCloseReasonBytes;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xc0) == 0x80) --end;
  return reason.substr(0, end);
}

// Notes when bytes arrive, whatever they are. (Beast's control_callback would see pings and pongs
// only, and with it a read can wait for a close that waits for the read.)
class ArrivalTime {
 public:
  TimePoint last() const { return last_; }
  void set(TimePoint now) { last_ = now; }

 private:
  friend class beast::rate_policy_access;
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  std::size_t available_read_bytes() const noexcept { return kAll; }
  std::size_t available_write_bytes() const noexcept { return kAll; }
  void transfer_read_bytes(std::size_t size) noexcept {
    if (size > 0) last_ = SteadyClock::now();
  }
  void transfer_write_bytes(std::size_t) const noexcept {}
  void on_timer() const noexcept {}

  TimePoint last_;
};

using Transport =
    beast::basic_stream<asio::generic::stream_protocol, asio::any_io_executor, ArrivalTime>;

class WsSession final : public Session, public std::enable_shared_from_this<WsSession> {
 public:
  WsSession(std::shared_ptr<SessionRegistry> sessions, StreamSocket socket,
            std::shared_ptr<ports::WebSocketListener> listener, const WebSocketOptions& options)
      : sessions_(std::move(sessions)),
        stream_(ArrivalTime(), std::move(socket)),
        timer_(stream_.get_executor()),
        listener_(std::move(listener)),
        options_(options) {}

  asio::any_io_executor executor() override { return stream_.get_executor(); }
  void shut_down() override;

  void accept(UpgradeRequest request, std::shared_ptr<std::atomic<std::size_t>> open);
  void handshake(WebSocketHandshake handshake, HandshakeDone done);

 private:
  void begin();
  void open();
  void pump();
  void read();
  void on_read(ErrorCode error);
  void deliver();
  void end(websocket::close_code code, std::string reason, bool at_once);
  void on_written(ErrorCode error);
  void send_close();
  void ping();
  void arm_timer();
  void on_timer();
  ArrivalTime& arrival() { return stream_.next_layer().rate_policy(); }
  void finish(std::string reason, base::ErrorCode code = base::ErrorCode::kIo);
  std::string describe(ErrorCode error) const;

  const std::shared_ptr<SessionRegistry> sessions_;
  websocket::stream<Transport> stream_;
  asio::steady_timer timer_;
  std::shared_ptr<ports::WebSocketListener> listener_;
  const WebSocketOptions options_;
  const std::shared_ptr<WsOutbox> outbox_ = std::make_shared<WsOutbox>();

  // The handshake.
  UpgradeRequest upgrade_;
  WebSocketHandshake handshake_;
  websocket::response_type answer_;
  HandshakeDone done_;
  TimePoint handshake_deadline_;

  // All below: the strand only.
  asio::cancellation_signal cancel_read_;
  asio::cancellation_signal cancel_write_;
  asio::cancellation_signal cancel_close_;
  asio::cancellation_signal cancel_ping_;
  beast::flat_buffer buffer_;
  WsFrame writing_frame_;
  std::shared_ptr<std::atomic<std::size_t>> open_count_;
  bool opened_ = false;
  bool reading_ = false;
  bool writing_ = false;
  bool pinging_ = false;
  bool close_sent_ = false;
  bool stopping_ = false;
  bool finished_ = false;
  TimePoint next_ping_;
  std::optional<TimePoint> close_deadline_;
};

void WsSession::begin() {
  stream_.read_message_max(options_.frame_bytes);
  stream_.auto_fragment(true);
  stream_.write_buffer_bytes(kWriteFrameBytes);
  handshake_deadline_ = SteadyClock::now() + options_.handshake_timeout;
  arm_timer();
}

void WsSession::accept(UpgradeRequest request, std::shared_ptr<std::atomic<std::size_t>> open) {
  open_count_ = std::move(open);
  begin();
  upgrade_ = std::move(request);
  stream_.async_accept(upgrade_, [self = shared_from_this()](ErrorCode error) {
    if (self->finished_) return;
    if (error) return self->finish(self->describe(error));
    self->open();
  });
}

void WsSession::handshake(WebSocketHandshake handshake, HandshakeDone done) {
  handshake_ = std::move(handshake);
  done_ = std::move(done);
  begin();
  stream_.set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
    request.set(http::field::user_agent, "cotenant");
    for (const ports::HttpHeader& header : handshake_.headers) {
      request.set(header.name, header.value);
    }
  }));
  stream_.async_handshake(
      answer_, handshake_.host, handshake_.target, [self = shared_from_this()](ErrorCode error) {
        if (self->finished_) return;
        if (error == websocket::error::upgrade_declined) {
          return self->finish(
              fmt::format("the server answered {} to the upgrade: {}", self->answer_.result_int(),
                          self->answer_.body().substr(0, 1024)),
              base::ErrorCode::kProtocol);
        }
        if (error) return self->finish(self->describe(error));
        self->open();
      });
}

void WsSession::open() {
  opened_ = true;
  upgrade_ = {};
  arrival().set(SteadyClock::now());
  next_ping_ = SteadyClock::now() + options_.ping_interval;
  arm_timer();
  auto handle =
      make_ws_handle(outbox_, options_, [sessions = sessions_, session = weak_from_this()] {
        sessions->post(session, [](WsSession& self) { self.pump(); });
      });
  if (auto done = std::exchange(done_, nullptr)) done(handle);
  try {
    listener_->on_open(std::move(handle));
  } catch (...) {
    base::log::error("net: a WebSocket listener threw in on_open");
    end(websocket::close_code::internal_error, "the listener failed", /*at_once=*/true);
  }
  // The listener may have taken its time, in which nothing could be read.
  arrival().set(SteadyClock::now());
  read();
}

void WsSession::read() {
  {
    const std::lock_guard lock(outbox_->mutex);
    // Once ended, what still comes is read whatever the application wants: the peer's close is in it.
    reading_ = outbox_->reading || outbox_->ended;
  }
  if (!reading_) return;
  stream_.async_read_some(
      buffer_, 0,
      asio::bind_cancellation_slot(
          cancel_read_.slot(),
          [self = shared_from_this()](ErrorCode error, std::size_t) { self->on_read(error); }));
}

void WsSession::on_read(ErrorCode error) {
  if (finished_) return;
  if (error) return finish(describe(error));
  if (stream_.is_message_done()) deliver();
  reading_ = false;  // only now: deliver() may come to pump(), which must not read as well
  read();
}

void WsSession::deliver() {
  bool ended = false;
  {
    const std::lock_guard lock(outbox_->mutex);
    ended = outbox_->ended;
  }
  if (!ended) {
    const auto data = buffer_.cdata();
    const std::string_view message(static_cast<const char*>(data.data()), data.size());
    try {
      if (!stream_.got_binary()) {
        listener_->on_text(message);
      } else if (!listener_->on_binary(message)) {
        end(websocket::close_code::unknown_data, "only text frames are accepted", /*at_once=*/true);
      }
    } catch (...) {
      base::log::error("net: a WebSocket listener threw");
      end(websocket::close_code::internal_error, "the listener failed", /*at_once=*/true);
    }
    arrival().set(SteadyClock::now());
  }
  buffer_.consume(buffer_.size());
  if (buffer_.capacity() > kIdleBufferBytes) buffer_.shrink_to_fit();
}

void WsSession::end(websocket::close_code code, std::string reason, bool at_once) {
  {
    const std::lock_guard lock(outbox_->mutex);
    outbox_->end(code, std::move(reason), at_once);
  }
  pump();
}

void WsSession::pump() {
  if (finished_ || !opened_) return;
  bool close_now = false;
  bool read_on = false;
  {
    const std::lock_guard lock(outbox_->mutex);
    outbox_->wake_posted = false;
    read_on = (outbox_->reading || outbox_->ended) && !reading_;
  }
  if (read_on) read();
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->ended && !close_deadline_) {
      close_deadline_ =
          SteadyClock::now() +
          (stopping_ ? std::min(options_.close_timeout, kStopGrace) : options_.close_timeout);
      arm_timer();
    }
    close_now = outbox_->ended && (outbox_->urgent || (!writing_ && outbox_->frames.empty()));
    if (!close_now && !close_sent_ && !writing_ && !outbox_->frames.empty()) {
      writing_frame_ = std::move(outbox_->frames.front());
      outbox_->frames.pop_front();
      writing_ = true;
    } else if (!close_now) {
      return;
    }
  }
  if (close_now) return send_close();
  stream_.binary(writing_frame_.is_binary);
  stream_.async_write(
      asio::buffer(writing_frame_.data),
      asio::bind_cancellation_slot(
          cancel_write_.slot(),
          [self = shared_from_this()](ErrorCode error, std::size_t) { self->on_written(error); }));
}

void WsSession::on_written(ErrorCode error) {
  writing_ = false;
  bool is_drained = false;
  {
    const std::lock_guard lock(outbox_->mutex);
    outbox_->bytes -= writing_frame_.data.size() + kMessageCostBytes;
    is_drained = outbox_->above_mark && outbox_->bytes < ports::kStreamHighWaterBytes / 2;
    if (is_drained) outbox_->above_mark = false;
    is_drained = is_drained && !outbox_->ended;
  }
  writing_frame_ = {};
  if (finished_) return;
  // A broken connection also fails the pending read, which ends the session with its reason.
  if (error) return reading_ ? void() : finish(describe(error));
  if (is_drained) {
    try {
      listener_->on_drained();
    } catch (...) {
      base::log::error("net: a WebSocket listener threw in on_drained");
    }
  }
  pump();
}

void WsSession::send_close() {
  if (std::exchange(close_sent_, true)) return;
  websocket::close_reason reason;
  {
    const std::lock_guard lock(outbox_->mutex);
    reason.code = outbox_->code;
    const std::string_view text = cut_reason(outbox_->reason);
    reason.reason.assign(text.data(), text.size());
  }
  stream_.async_close(reason,
                      asio::bind_cancellation_slot(cancel_close_.slot(),
                                                   [self = shared_from_this()](ErrorCode error) {
                                                     if (!self->finished_)
                                                       self->finish(self->describe(error));
                                                   }));
}

void WsSession::ping() {
  if (pinging_ || close_sent_) return;
  pinging_ = true;
  stream_.async_ping({}, asio::bind_cancellation_slot(
                             cancel_ping_.slot(), [self = shared_from_this()](ErrorCode error) {
                               self->pinging_ = false;
                               const bool is_unseen =
                                   error && !self->reading_ && !self->close_sent_;
                               if (is_unseen && !self->finished_)
                                 self->finish(self->describe(error));
                             }));
}

void WsSession::arm_timer() {
  TimePoint due = handshake_deadline_;
  if (opened_) {
    due = std::min(arrival().last() + options_.dead_after, next_ping_);
    if (close_deadline_) due = std::min(due, *close_deadline_);
  }
  timer_.expires_at(due);
  timer_.async_wait([self = shared_from_this()](ErrorCode error) {
    if (!error && !self->finished_) self->on_timer();
  });
}

void WsSession::on_timer() {
  const TimePoint now = SteadyClock::now();
  if (!opened_) {
    if (now >= handshake_deadline_) {
      return finish("no handshake in time", base::ErrorCode::kTimeout);
    }
  } else {
    if (close_deadline_ && now >= *close_deadline_) return finish("no closing handshake in time");
    // Who does not read cannot tell.
    if (!reading_ && !close_sent_) arrival().set(now);
    if (now >= arrival().last() + options_.dead_after) {
      return finish(
          fmt::format("dead: nothing was received for {} ms", options_.dead_after.count()));
    }
    if (now >= next_ping_) {
      ping();
      next_ping_ = now + options_.ping_interval;
    }
  }
  arm_timer();
}

void WsSession::shut_down() {
  if (finished_) return;
  stopping_ = true;
  if (!opened_) return finish("stopped", base::ErrorCode::kUnavailable);
  if (close_deadline_) {
    close_deadline_ = std::min(*close_deadline_, SteadyClock::now() + kStopGrace);
    arm_timer();
  }
  end(websocket::close_code::going_away, "this side is stopping", /*at_once=*/false);
}

std::string WsSession::describe(ErrorCode error) const {
  // Also when the peer breaks the connection instead of finishing the handshake that it began.
  if (error == websocket::error::closed || stream_.reason().code != websocket::close_code::none) {
    const websocket::close_reason& reason = stream_.reason();
    return fmt::format("closed by the peer ({}): {}", reason.code,
                       std::string_view(reason.reason.data(), reason.reason.size()));
  }
  if (error == websocket::error::message_too_big) {
    return fmt::format("the peer sent a message of more than {} bytes", options_.frame_bytes);
  }
  if (error == asio::error::eof) return "the peer closed the connection";
  return error.message();
}

void WsSession::finish(std::string reason, base::ErrorCode code) {
  if (std::exchange(finished_, true)) return;
  if (open_count_) --*open_count_;
  timer_.cancel();
  // Closing the socket ends the operations that wait for it, but not those that wait inside the
  // stream for each other: with Beast 1.81 a read that must fail the connection and a close that
  // waits for the peer's answer do so for ever, and would keep this session and the io_context's
  // threads. (Destroying the stream instead would take the socket from under a running teardown.)
  for (asio::cancellation_signal* const signal :
       {&cancel_read_, &cancel_write_, &cancel_close_, &cancel_ping_}) {
    signal->emit(asio::cancellation_type::terminal);
  }
  stream_.next_layer().close();
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->ended) reason = outbox_->reason;
    outbox_->ended = true;
    outbox_->frames.clear();
  }
  const auto listener = std::move(listener_);
  if (auto done = std::exchange(done_, nullptr)) done(base::fail(code, reason));
  if (opened_) {
    try {
      listener->on_closed(reason);
    } catch (...) {
      base::log::error("net: a WebSocket listener threw in on_closed");
    }
  }
  sessions_->remove(this);
}

}  // namespace

void accept_websocket(const std::shared_ptr<SessionRegistry>& sessions, StreamSocket socket,
                      UpgradeRequest request, std::shared_ptr<ports::WebSocketListener> listener,
                      const WebSocketOptions& options,
                      std::shared_ptr<std::atomic<std::size_t>> open) {
  auto session =
      std::make_shared<WsSession>(sessions, std::move(socket), std::move(listener), options);
  if (!sessions->add(session)) return;
  ++*open;
  asio::dispatch(session->executor(),
                 [session, moved = std::move(request), counter = std::move(open)]() mutable {
                   session->accept(std::move(moved), std::move(counter));
                 });
}

std::weak_ptr<Session> open_websocket(const std::shared_ptr<SessionRegistry>& sessions,
                                      StreamSocket socket, WebSocketHandshake handshake,
                                      std::shared_ptr<ports::WebSocketListener> listener,
                                      const WebSocketOptions& options, HandshakeDone done) {
  auto session =
      std::make_shared<WsSession>(sessions, std::move(socket), std::move(listener), options);
  if (!sessions->add(session)) {
    done(base::fail(base::ErrorCode::kUnavailable, "the client is stopping"));
    return {};
  }
  asio::dispatch(session->executor(),
                 [session, moved = std::move(handshake), then = std::move(done)]() mutable {
                   session->handshake(std::move(moved), std::move(then));
                 });
  return session;
}

}  // namespace cotenant::net
