// Private to net's .cpp files. Accepts connections at one address, TCP or a unix socket, and starts
// an HttpSession for each.
//
// Each listener counts its own connections: those who fill the TCP port keep nobody out of the unix
// socket.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "net/connection_table.h"
#include "net/http_session.h"
#include "net/session.h"

namespace cotenant::net {

class HttpListener final : public Session, public std::enable_shared_from_this<HttpListener> {
 public:
  using Address = asio::generic::stream_protocol::endpoint;

  HttpListener(asio::io_context& io, const HttpSessionContext& context);
  ~HttpListener() override;

  asio::any_io_executor executor() override { return acceptor_.get_executor(); }
  void shut_down() override;

  // One of these two, once.
  ErrorCode open(const Address& address);
  // Mode 0600; replaces a socket that nobody listens on. Errors: kUnavailable (another process
  // listens there, or the folder does not allow it).
  base::Status open_unix(const std::string& path);

  void accept();
  Address address() const { return acceptor_.local_endpoint(); }
  std::size_t connections() const { return table_->size(); }

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

  void start_session(StreamSocket socket);
  void retry(ErrorCode error);
  ports::HttpPeer peer_of(StreamSocket& socket) const;

  asio::io_context& io_;
  const HttpSessionContext& context_;
  const std::shared_ptr<ConnectionTable> table_ = std::make_shared<ConnectionTable>();
  Acceptor acceptor_;
  asio::steady_timer retry_timer_;
  std::string unix_path_;
};

}  // namespace cotenant::net
