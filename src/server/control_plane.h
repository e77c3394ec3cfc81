// The control plane, put together: store, core loop, agent hub, guard, API, HTTP server.
//
// start() returns once it listens. Threads: any thread may call; on_failed comes from the core
// loop's thread when the store's outcome is unknown: the owner then stops the control plane, never
// the agent.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "ports/store.h"

namespace cotenant::server {

struct ControlPlaneOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8484;  // 0: any free one
  std::string region = "us-east-1";
  std::string account_id = "000000000000";
  // False: whoever reaches the address may call, which must then be loopback.
  bool must_sign = true;
  std::map<std::string, std::string> secrets;  // by access key id
  bool allow_plain_http = false;               // off loopback without TLS
  std::string tls_certificate;                 // PEM files; both or none
  std::string tls_key;
  std::string agents_file;  // join tokens and agents' keys; empty: any agent may join (tests)
  std::string unix_socket;  // empty: none
};

class ControlPlane {
 public:
  // Errors: those of the store, the agents' file and the HTTP server; kInvalidParameter for an
  // address off loopback without what it needs.
  static base::Result<std::unique_ptr<ControlPlane>> start(
      const ControlPlaneOptions& options, std::unique_ptr<ports::Store> store,
      std::function<void(const base::Error&)> on_failed);
  ~ControlPlane();

  std::uint16_t port() const;

 private:
  struct Parts;
  explicit ControlPlane(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace cotenant::server
