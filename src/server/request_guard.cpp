#include "server/request_guard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "server/request_origin.h"

namespace cotenant::server {
namespace {

// Errors: kAccessDenied, another user's process (who got at the socket by its folder's fault).
base::Status check_unix_user(const ports::HttpPeer& peer) {
  if (!peer.user || *peer.user == 0 || *peer.user == ::geteuid()) return {};
  return base::fail(
      base::ErrorCode::kAccessDenied,
      fmt::format("user {} may not use this unix socket; call over http with credentials",
                  *peer.user));
}

bool needs_no_signature(const ports::HttpRequest& request) {
  if (request.method != "GET") return false;
  if (request.target == "/healthz") return true;
  return request.target == "/metrics" && is_loopback_host(request.peer.address);
}

}  // namespace

base::Status RequestGuard::check_origin(const ports::HttpRequest& request) const {
  if (auto status = check_request_origin(request, options_.is_on_loopback || request.peer.user);
      !status) {
    return status;
  }
  return check_unix_user(request.peer);
}

base::Status RequestGuard::check_call(const ports::HttpRequest& request) const {
  if (auto status = check_origin(request); !status) return status;
  if (!options_.must_sign || request.peer.user || needs_no_signature(request)) return {};
  net::SigV4Rules rules;
  rules.region = options_.region;
  auto signer = net::verify_sigv4(request, rules, clock_.now_ms() / 1000,
                                  [&](std::string_view key) -> std::optional<std::string> {
                                    const auto found = options_.secrets.find(std::string(key));
                                    if (found == options_.secrets.end()) return std::nullopt;
                                    return found->second;
                                  });
  if (!signer) return base::fail(signer.error());
  return {};
}

base::Result<std::string> RequestGuard::check_agent(const ports::HttpRequest& request) const {
  if (auto status = check_origin(request); !status) return base::fail(status.error());
  if (agents_ == nullptr) return std::string();
  const bool is_trusted = !options_.must_sign || request.peer.user.has_value();
  return agents_->admit(request, is_trusted);
}

}  // namespace cotenant::server
