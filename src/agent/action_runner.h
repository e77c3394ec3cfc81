// Carries out one action on the ports. Any thread; blocks as long as the port's call does.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/action.h"
#include "agent/image_keeper.h"
#include "base/result.h"
#include "ports/container_runtime.h"
#include "ports/gpu_wiring.h"
#include "ports/mps_control.h"

namespace cotenant::agent {

class ActionRunner {
 public:
  // `on_pull` is called with an image when a registry is asked for it.
  ActionRunner(std::string instance_id, ports::ContainerRuntime& runtime, ports::MpsControl& mps,
               ports::GpuWiring& wiring, ImageKeeper& images,
               std::function<void(const std::string&)> on_pull);

  base::Status run(const Action& action);
  // Pulls end soon, with an error; those to come too.
  void stop_pulls() { stop_pulls_.request_stop(); }

  // What the engine said of itself, asked for once and again after forget_engine().
  base::Result<ports::EngineInfo> engine();
  void forget_engine();

 private:
  base::Status create(const CreateContainer& action);
  base::Status remove(const RemoveContainer& action);

  const std::string instance_id_;
  ports::ContainerRuntime& runtime_;
  ports::MpsControl& mps_;
  ports::GpuWiring& wiring_;
  ImageKeeper& images_;
  const std::function<void(const std::string&)> on_pull_;
  std::stop_source stop_pulls_;
  std::mutex mutex_;  // guards engine_
  std::optional<ports::EngineInfo> engine_;
};

}  // namespace cotenant::agent
