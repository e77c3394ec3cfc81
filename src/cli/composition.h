// What main() hands to the verbs: how this build makes each port. Only src/composition.cpp names
// concrete adapters.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "ports/container_runtime.h"
#include "ports/container_streams.h"
#include "ports/gpu_driver.h"
#include "ports/gpu_wiring.h"
#include "ports/image_store.h"
#include "ports/mps_control.h"
#include "ports/store.h"

namespace cotenant::cli {

struct MpsOptions {
  std::string run_dir;
  std::string control_binary;
  std::map<std::string, std::string> environment;
};

// What one engine does for us.
struct EngineAdapters {
  std::unique_ptr<ports::ContainerRuntime> runtime;
  std::unique_ptr<ports::ImageStore> images;
  std::unique_ptr<ports::ContainerStreams> streams;
};

struct Composition {
  std::function<base::Result<std::unique_ptr<ports::Store>>(const std::string& data_dir)>
      open_store;
  // A container engine.
  std::function<base::Result<EngineAdapters>(const std::string& docker_host)> make_engine;
  // Without one: containers are processes, remembered below `folder`.
  std::function<base::Result<EngineAdapters>(const std::string& folder)> make_process_engine;
  std::function<std::unique_ptr<ports::GpuWiring>(const std::string& cdi_dir)>
      make_process_gpu_wiring;
  std::function<std::unique_ptr<ports::GpuDriver>(const std::string& nvml_library)> make_gpu_driver;
  std::function<std::unique_ptr<ports::GpuWiring>(const std::string& cdi_dir)> make_gpu_wiring;
  std::function<std::unique_ptr<ports::MpsControl>(const MpsOptions& options)> make_mps_control;
};

}  // namespace cotenant::cli
