#include "net/http_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "base/log.h"
#include "net/http_listener.h"
#include "net/io_runtime.h"

namespace cotenant::net {
namespace {

constexpr int kThreadsMax = 64;
// File descriptors for everything that is no connection of ours: store, engine, driver, logs.
constexpr std::size_t kOtherFiles = 256;

// Connections must never use up the process's file descriptors, or the store could not open a file.
HttpServerOptions fitted(HttpServerOptions options) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return options;
  const auto all = static_cast<std::size_t>(files.rlim_cur);
  // A connection with TLS has two more: the ends of its pipe.
  const std::size_t shares = options.tls != nullptr ? 6 : 2;
  const std::size_t each =
      std::max<std::size_t>(all > kOtherFiles ? (all - kOtherFiles) / shares : 0, 16);
  if (options.connections > each || options.websockets > each) {
    base::log::info(
        "HTTP server: the limit of {} open files allows {} connections and as many agents", all,
        each);
  }
  options.connections = std::min(options.connections, each);
  options.websockets = std::min(options.websockets, each);
  return options;
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerOptions& server_options, ports::HttpHandler& handler)
      : options(fitted(server_options)),
        runtime(options.threads),
        context{runtime.sessions(), handler, options,
                std::make_shared<std::atomic<std::size_t>>(0)} {}
  // The listeners' sockets must not outlive the io_context.
  ~Impl() {
    runtime.stop();
    listeners.clear();
  }

  std::shared_ptr<HttpListener> new_listener() {
    listeners.push_back(std::make_shared<HttpListener>(runtime.io(), context));
    return listeners.back();
  }
  base::Status listen_on_tcp();
  void begin();

  const HttpServerOptions options;  // sessions refer to it
  IoRuntime runtime;
  const HttpSessionContext context;
  std::vector<std::shared_ptr<HttpListener>> listeners;
  std::uint16_t port = 0;
};

base::Status HttpServer::Impl::listen_on_tcp() {
  ErrorCode error;
  const asio::ip::address address = asio::ip::make_address(options.address, error);
  if (error) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("HTTP server: address '{}': want an IP address, such as 127.0.0.1",
                    options.address));
  }
  const auto listener = new_listener();
  error = listener->open(asio::ip::tcp::endpoint(address, options.port));
  if (error) {
    return base::fail(base::ErrorCode::kUnavailable,
                      fmt::format("HTTP server: cannot listen on {} port {}: {}", options.address,
                                  options.port, error.message()));
  }
  asio::ip::tcp::endpoint bound;
  const HttpListener::Address generic = listener->address();
  bound.resize(generic.size());
  std::memcpy(bound.data(), generic.data(), generic.size());
  port = bound.port();
  return {};
}

void HttpServer::Impl::begin() {
  for (const auto& listener : listeners) {
    runtime.sessions()->add(listener);
    asio::dispatch(listener->executor(), [listener] { listener->accept(); });
  }
}

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
  try {
    auto impl = std::make_unique<Impl>(options, handler);
    if (auto status = impl->listen_on_tcp(); !status) return base::fail(status.error());
    if (!options.unix_socket.empty()) {
      auto status = impl->new_listener()->open_unix(options.unix_socket);
      if (!status) return base::fail(status.error());
    }
    impl->begin();
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
  std::size_t sum = *impl_->context.websockets;
  for (const auto& listener : impl_->listeners) sum += listener->connections();
  return sum;
}

void HttpServer::stop() {
  impl_->runtime.stop();
}

}  // namespace cotenant::net
