// The node's shell around AgentLogic: carries its actions out, tells it what came of them, and
// talks to the control plane.
//
// Threads: one loop thread owns logic and reports; blocking calls of the ports run on bounded pools
// (of their own for container stops, which take as long as the container likes, and for images,
// which take as long as a registry likes, and for looks at the GPU driver, which may hang); one
// thread watches the engine; one makes the connection. start() and stop() from one thread. The ports and
// what `connect` uses must outlive the Agent. Containers and daemons outlive it: stop() leaves them
// as they are, and a new Agent with the same data folder takes them over.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "agent/agent_logic.h"
#include "agent/image_keeper.h"
#include "agent/server_link.h"
#include "agent/stream_service.h"
#include "base/result.h"
#include "ports/container_runtime.h"
#include "ports/container_streams.h"
#include "ports/gpu_driver.h"
#include "ports/gpu_wiring.h"
#include "ports/image_store.h"
#include "ports/mps_control.h"

namespace cotenant::agent {

struct AgentOptions {
  Connector connect;
  StreamConnector open_stream;
  LinkOptions link;  // link.server: the control plane's address, for log lines
  std::string cluster = "default";
  std::string data_dir;
  std::string agent_version;
  std::optional<int> api_port;  // of a control plane on the same machine: reserved
  std::string mps_control_binary =
      "nvidia-cuda-mps-control";  // sharing is offered where it is there

  LogicOptions logic;
  ImageOptions images;
  std::chrono::milliseconds list_interval{5000};  // besides after each event
  std::chrono::milliseconds gpu_interval{5000};   // between looks at the GPU driver
  std::chrono::milliseconds tick{250};
  std::chrono::milliseconds engine_retry_max{10000};
  std::chrono::milliseconds resend_after{15000};  // reports that nobody acknowledged
};

struct AgentPorts {
  ports::ContainerRuntime& runtime;
  ports::ImageStore& images;
  ports::ContainerStreams& streams;
  ports::GpuDriver& driver;
  ports::MpsControl& mps;
  ports::GpuWiring& wiring;
};

class Agent {
 public:
  // Opens the data folder. Errors: those of AgentState, kIo (no boot id).
  static base::Result<std::unique_ptr<Agent>> create(AgentOptions options, AgentPorts ports);
  // Waits for actions that are still being carried out, up to their ports' time limits.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  const std::string& instance_id() const;
  // Errors: kUnavailable (no thread).
  base::Status start();
  // Ends the connection and takes up no more work. False: an action (a container's stop, say) still
  // runs after `grace`; the caller may wait for it with the destructor, or end the process.
  bool stop(std::chrono::milliseconds grace = std::chrono::seconds(5));

 private:
  class Loop;
  explicit Agent(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace cotenant::agent
