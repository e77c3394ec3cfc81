// Private to net's .cpp files (it pulls in Boost.Asio): the names that they share.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>

namespace cotenant::net {

namespace asio = boost::asio;

using ErrorCode = boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;
// TCP and unix sockets alike, so that there is one kind of session.
using StreamSocket = asio::generic::stream_protocol::socket;

}  // namespace cotenant::net
