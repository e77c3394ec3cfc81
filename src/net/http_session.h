// Private to net's .cpp files. One connection of the HTTP server: reads requests (http_session.cpp),
// writes answers (http_session_write.cpp), and leaves when it becomes a WebSocket.
//
// All members but executor() run on the connection's strand.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/connection_table.h"
#include "net/http_body_queue.h"
#include "net/http_server.h"
#include "net/session.h"
#include "ports/http.h"

namespace cotenant::net {

// What the connections of one server share; outlives them.
struct HttpSessionContext {
  std::shared_ptr<SessionRegistry> sessions;
  ports::HttpHandler& handler;
  const HttpServerOptions& options;
  // Open WebSockets of the server.
  std::shared_ptr<std::atomic<std::size_t>> websockets;
};

class HttpSession final : public Session, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(const HttpSessionContext& context, std::shared_ptr<ConnectionTable> table,
              StreamSocket socket, ports::HttpPeer peer);

  asio::any_io_executor executor() override { return stream_.get_executor(); }
  void shut_down() override;

  void wait_for_request();
  void refuse(int status, base::ErrorCode code, std::string_view message);
  void respond(ports::HttpResponse response);
  void answer_upgrade(ports::HttpUpgrade answer);
  void pump_body();
  // Closed to make room, unless it is at work by now.
  void give_way();

 private:
  enum class State { kReading, kHandling, kUpgrading, kWriting, kStreaming, kLingering, kFinished };
  using Stream = boost::beast::basic_stream<asio::generic::stream_protocol, asio::any_io_executor>;
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void read_header();
  void on_header();
  bool check_header();
  void read_body();
  void on_read_error(ErrorCode error);
  void on_request();
  void on_upgrade();
  void write(ports::HttpResponse response);
  void on_written(ErrorCode error);
  void start_body();
  void watch_peer();
  void write_chunk(std::string data, std::size_t counted, bool is_last);
  void break_off(std::string_view reason);
  void end_body(std::string_view reason);
  void linger();
  void discard();
  void finish(std::string_view reason = "closed");
  void note(Activity activity);

  const HttpSessionContext& context_;
  const std::shared_ptr<ConnectionTable> table_;
  const ports::HttpPeer peer_;
  Stream stream_;
  asio::steady_timer stop_timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;

  State state_ = State::kReading;
  // Of the answer to come.
  unsigned version_ = 11;
  bool is_head_ = false;
  bool keep_alive_ = false;
  bool must_linger_ = false;
  std::size_t discarded_bytes_ = 0;
  // A streamed answer.
  std::shared_ptr<ports::HttpBodyListener> body_listener_;
  std::shared_ptr<HttpBodyQueue> body_queue_;
  std::string chunk_;
  bool is_chunk_going_out_ = false;
};

}  // namespace cotenant::net
