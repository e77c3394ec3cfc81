#include "server/control_plane.h"

#include <fmt/format.h>

#include <utility>

#include "base/prng.h"
#include "net/http_server.h"
#include "server/agent_hub.h"
#include "server/api_handler.h"
#include "server/core_loop.h"
#include "server/request_origin.h"

namespace cotenant::server {

// Destroyed from the bottom up: first nobody calls, then nothing waits, then the store closes.
struct ControlPlane::Parts {
  Parts(std::unique_ptr<ports::Store> opened_store, base::ArnFormat arns)
      : store(std::move(opened_store)), arn_format(std::move(arns)) {}

  base::SystemClock clock;
  std::unique_ptr<ports::Store> store;
  base::ArnFormat arn_format;
  std::unique_ptr<AgentHub> hub;
  std::unique_ptr<CoreLoop> loop;
  std::unique_ptr<ApiHandler> handler;
  std::unique_ptr<net::HttpServer> http;
};

ControlPlane::ControlPlane(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ControlPlane::~ControlPlane() = default;

base::Result<std::unique_ptr<ControlPlane>> ControlPlane::start(
    const ControlPlaneOptions& options, std::unique_ptr<ports::Store> store,
    std::function<void(const base::Error&)> on_failed) {
  if (!is_loopback_host(options.address)) {
    return base::fail(base::ErrorCode::kInvalidParameter,
                      fmt::format("--listen: {} is not a loopback address; until authentication is "
                                  "there, cotenant listens on 127.0.0.1 or ::1 only",
                                  options.address));
  }
  auto parts = std::make_unique<Parts>(std::move(store),
                                       base::ArnFormat(options.region, options.account_id));
  auto engine = CoreEngine::load(*parts->store, parts->clock, base::random_seed());
  if (!engine) return base::fail(engine.error());
  parts->loop = std::make_unique<CoreLoop>(std::move(*engine), std::move(on_failed));
  parts->hub = std::make_unique<AgentHub>(*parts->loop);
  parts->loop->set_effect_sink(parts->hub.get());
  parts->handler = std::make_unique<ApiHandler>(*parts->loop, *parts->hub, parts->arn_format);

  net::HttpServerOptions http;
  http.address = options.address == "localhost" ? "127.0.0.1" : options.address;
  http.port = options.port;
  auto server = net::HttpServer::start(http, *parts->handler);
  if (!server) return base::fail(server.error());
  parts->http = std::move(*server);
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::move(parts)));
}

std::uint16_t ControlPlane::port() const {
  return parts_->http->port();
}

}  // namespace cotenant::server
