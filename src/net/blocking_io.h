// Private to net's .cpp files. Runs asynchronous operations one after the other on the calling
// thread, so that a blocking client can have a deadline and be interrupted by a stop token at any
// moment.
//
// After time_is_up() or stopped() the socket is closed and each further operation fails at once. A
// host that is a name is resolved by getaddrinfo, which cannot be interrupted: there a call may
// last as long as the resolver's own time-outs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/asio.h"
#include "net/endpoint.h"
#include "net/tls.h"

namespace cotenant::net {

class BlockingIo {
 public:
  explicit BlockingIo(std::stop_token stop)
      : on_stop_(std::move(stop), [this] {
          asio::post(io_, [this] {
            stopped_ = true;
            abort();
          });
        }) {}
  BlockingIo(const BlockingIo&) = delete;
  BlockingIo& operator=(const BlockingIo&) = delete;

  StreamSocket& socket() { return socket_; }
  void set_deadline(std::optional<SteadyClock::time_point> deadline) { deadline_ = deadline; }
  bool stopped() const { return stopped_; }
  bool time_is_up() const { return time_is_up_; }

  // `start` is handed a completion handler for its operation.
  template <class Start>
  ErrorCode await(Start&& start) {
    if (stopped_ || time_is_up_) return asio::error::operation_aborted;
    std::optional<ErrorCode> outcome;
    start([&outcome](ErrorCode error, auto&&...) { outcome = error; });
    io_.restart();
    while (!outcome) {
      if ((deadline_ ? io_.run_one_until(*deadline_) : io_.run_one()) > 0) continue;
      time_is_up_ = true;
      abort();
      io_.restart();
      while (!outcome) io_.run_one();
    }
    return *outcome;
  }

  // Tries each address of the endpoint; TLS is not its affair. Errors: kUnavailable, kTimeout; also
  // when stopped.
  base::Status connect(const Endpoint& endpoint);
  // After it: TLS with that context; socket() is then the plain end. Errors: the same.
  base::Status secure(const Endpoint& endpoint, const TlsContextPtr& tls);

 private:
  using Address = asio::generic::stream_protocol::endpoint;

  base::Result<std::vector<Address>> resolve(const Endpoint& endpoint);
  base::Status failure(const Endpoint& endpoint, ErrorCode error) const;
  void abort();

  asio::io_context io_{1};
  asio::ip::tcp::resolver resolver_{io_};
  StreamSocket socket_{io_};
  std::optional<SteadyClock::time_point> deadline_;
  // Only the calling thread touches these two: the stop token's callback is posted to io_.
  bool stopped_ = false;
  bool time_is_up_ = false;
  std::stop_callback<std::function<void()>> on_stop_;  // last: it posts into the members above
};

}  // namespace cotenant::net
