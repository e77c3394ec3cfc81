// A control plane without sockets: the real handler, loop, engine and agent hub over a store in
// memory, with agents that a test plays. Restart keeps the store. One thread uses it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "codec/json.h"
#include "core/desired.h"
#include "fakes/fake_web_socket.h"
#include "fakes/memory_store.h"
#include "fakes/settable_clock.h"
#include "ports/http.h"
#include "server/agent_access.h"
#include "server/agent_hub.h"
#include "server/api_handler.h"
#include "server/core_loop.h"
#include "server/metrics.h"

namespace cotenant::test {

class TestPlane {
 public:
  TestPlane();
  ~TestPlane();

  // Waits for the answer.
  ports::HttpResponse send(ports::HttpRequest request);

  // An agent says hello; an older connection of the same instance stays open. Errors: the reason of
  // a refusal. `running`: tasks of which the agent says that a container of them runs.
  base::Status connect(const core::InstanceRegistration& registration,
                       const std::vector<std::string>& running = {});
  void disconnect(const std::string& instance_id);
  // The agent of the task's instance reports, and is acknowledged.
  base::Status observe(const std::string& task_id,
                       std::vector<core::ContainerObservation> containers);
  // What the agent has been told to run, by task id.
  std::map<std::string, codec::Json> desired(const std::string& instance_id) const;

  void advance(base::TimeMs by_ms);
  base::Status restart();
  // Mends the store and waits until it is seen to work.
  void set_store_works(bool works);

 private:
  struct Agent {
    std::shared_ptr<ports::WebSocketListener> listener;
    std::shared_ptr<fakes::FakeWebSocket> socket;
    std::int64_t seq = 0;
  };

  void stop();
  base::Status expire();

  fakes::SettableClock clock_;
  fakes::MemoryStore store_;
  std::string folder_;  // of the agents' file
  std::unique_ptr<server::AgentAccess> access_;
  std::uint64_t seed_ = 0;
  std::int64_t epoch_ = 0;
  std::unique_ptr<server::Metrics> metrics_;
  std::unique_ptr<server::CoreLoop> loop_;
  std::unique_ptr<server::AgentHub> hub_;
  std::unique_ptr<server::ApiHandler> handler_;
  std::map<std::string, Agent> agents_;
};

}  // namespace cotenant::test
