// Who may call: the first thing that happens to a request.
//
// A peer on the unix socket is who it is by SO_PEERCRED: our own user or root. Everybody else signs
// with a key pair of the credentials file, unless authentication is off, which only a server on
// loopback may have. No web page may call (an Origin header), nor, on loopback, a name that a web
// page had resolved to it (a Host that is not loopback).
//
// Any thread.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "net/sigv4.h"
#include "ports/http_message.h"
#include "server/agent_access.h"

namespace cotenant::server {

struct GuardOptions {
  bool must_sign = false;
  bool is_on_loopback = true;  // the address that the server listens on
  std::string region = "us-east-1";
  std::map<std::string, std::string> secrets;  // by access key id
};

class RequestGuard {
 public:
  // `agents` null: whoever gets this far may be any instance (tests).
  RequestGuard(GuardOptions options, const base::Clock& clock, AgentAccess* agents)
      : options_(std::move(options)), clock_(clock), agents_(agents) {}

  // For everything but agents. GET /healthz needs no signature, and GET /metrics none from loopback:
  // their callers cannot sign. Errors: kAccessDenied, and those of net::verify_sigv4.
  base::Status check_call(const ports::HttpRequest& request) const;

  // For GET /agent/v1 and its streams: the instance that this agent may speak for; empty: any.
  // Errors: kAccessDenied, kExpiredToken, kIo.
  base::Result<std::string> check_agent(const ports::HttpRequest& request) const;

 private:
  base::Status check_origin(const ports::HttpRequest& request) const;

  const GuardOptions options_;
  const base::Clock& clock_;
  AgentAccess* const agents_;
};

}  // namespace cotenant::server
