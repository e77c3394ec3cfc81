// The control plane, put together: store, core loop, agent hub, API, HTTP server.
//
// start() returns once it listens. Threads: any thread may call; on_failed comes from the core
// loop's thread when the store's outcome is unknown: the owner then stops the control plane, never
// the agent.
#pragma once

#include <cstdint>
#include <functional>
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
};

class ControlPlane {
 public:
  // Errors: those of the store and the HTTP server; kInvalidParameter for an address off loopback.
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
