// An agent without a machine, on a real connection: what it is told to run, runs at once, and what it
// is told to stop has stopped. For measuring the control plane and for killing it.
//
// Its frames are handled on the WebSocketClient's thread; the counters may be read by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "core/instance.h"
#include "net/ws_client.h"
#include "ports/http.h"

namespace cotenant::tests {

// 64 vCPU, 1 TiB and that many GPUs of 80 GiB.
core::InstanceRegistration live_registration(const std::string& id, int gpus);

class LiveAgent {
 public:
  // Says hello; whether it was accepted shows in connected().
  static base::Result<std::unique_ptr<LiveAgent>> connect(net::WebSocketClient& client,
                                                          const std::string& endpoint,
                                                          core::InstanceRegistration registration,
                                                          std::int64_t epoch);
  ~LiveAgent();

  bool connected() const;  // accepted, and not closed since
  bool closed() const;
  std::int64_t started() const;  // tasks
  std::int64_t stopped() const;

 private:
  class Listener;
  explicit LiveAgent(std::shared_ptr<Listener> listener);

  std::shared_ptr<Listener> listener_;
};

}  // namespace cotenant::tests
