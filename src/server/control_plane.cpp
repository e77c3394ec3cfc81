#include "server/control_plane.h"

#include <fmt/format.h>

#include <utility>

#include "base/prng.h"
#include "net/http_server.h"
#include "server/agent_access.h"
#include "server/agent_hub.h"
#include "server/api_handler.h"
#include "server/core_loop.h"
#include "server/metrics.h"
#include "server/request_guard.h"
#include "server/request_origin.h"

namespace cotenant::server {
namespace {

// What leaves this machine is signed, and nobody on the way may read or repeat it.
base::Status check_listen(const ControlPlaneOptions& options) {
  if (is_loopback_host(options.address)) return {};
  const auto refuse = [&](std::string_view why) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("--listen: {} is not a loopback address: {}", options.address, why));
  };
  if (!options.must_sign) return refuse("--auth off is for loopback only; use --auth sigv4");
  if (options.tls_certificate.empty() && !options.allow_plain_http) {
    return refuse(
        "whoever is on the way could read and repeat what is sent; give --tls-certificate and "
        "--tls-key, or --allow-plain-http where the network itself is private");
  }
  return {};
}

}  // namespace

// Destroyed from the bottom up: first nobody calls, then nothing waits, then the store closes.
struct ControlPlane::Parts {
  Parts(std::unique_ptr<ports::Store> opened_store, base::ArnFormat arns)
      : store(std::move(opened_store)), arn_format(std::move(arns)) {}

  base::SystemClock clock;
  std::unique_ptr<ports::Store> store;
  base::ArnFormat arn_format;
  Metrics metrics;
  std::unique_ptr<AgentAccess> agents;
  std::unique_ptr<RequestGuard> guard;
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
  if (auto status = check_listen(options); !status) return base::fail(status.error());
  auto parts = std::make_unique<Parts>(std::move(store),
                                       base::ArnFormat(options.region, options.account_id));
  auto engine = CoreEngine::load(*parts->store, parts->clock, base::random_seed());
  if (!engine) return base::fail(engine.error());
  parts->loop = std::make_unique<CoreLoop>(std::move(*engine), std::move(on_failed));
  parts->hub = std::make_unique<AgentHub>(*parts->loop);
  parts->loop->set_effect_sink(parts->hub.get());
  parts->loop->set_observer(&parts->metrics);
  if (!options.agents_file.empty()) {
    auto agents = AgentAccess::open(options.agents_file, parts->clock);
    if (!agents) return base::fail(agents.error());
    parts->agents = std::move(*agents);
  }
  GuardOptions guard{options.must_sign, is_loopback_host(options.address), options.region,
                     options.secrets};
  parts->guard =
      std::make_unique<RequestGuard>(std::move(guard), parts->clock, parts->agents.get());
  parts->handler =
      std::make_unique<ApiHandler>(*parts->loop, *parts->hub, parts->metrics, parts->arn_format,
                                   parts->guard.get(), parts->agents.get());

  net::HttpServerOptions http;
  http.address = options.address == "localhost" ? "127.0.0.1" : options.address;
  http.port = options.port;
  http.unix_socket = options.unix_socket;
  if (!options.tls_certificate.empty() || !options.tls_key.empty()) {
    if (options.tls_certificate.empty() || options.tls_key.empty()) {
      return base::fail(base::ErrorCode::kInvalidParameter,
                        "--tls-certificate and --tls-key: want both or none");
    }
    auto tls = net::load_server_tls(options.tls_certificate, options.tls_key);
    if (!tls) return base::fail(tls.error());
    http.tls = std::move(*tls);
  }
  auto server = net::HttpServer::start(http, *parts->handler);
  if (!server) return base::fail(server.error());
  parts->http = std::move(*server);
  return std::unique_ptr<ControlPlane>(new ControlPlane(std::move(parts)));
}

std::uint16_t ControlPlane::port() const {
  return parts_->http->port();
}

}  // namespace cotenant::server
