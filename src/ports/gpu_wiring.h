// How a container is given its GPUs. Implemented by adapters/gpu_wiring (CDI or the nvidia
// runtime).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ports/container_runtime.h"

namespace cotenant::ports {

// Any thread. Reads files, never the engine.
class GpuWiring {
 public:
  virtual ~GpuWiring() = default;
  // Changes `spec` so that the container sees exactly these GPUs; without any, so that it sees none
  // whatever its image asks for. What it sets wins over what the spec has already. MPS is the
  // caller's affair. Errors: kUnavailable (this machine has no way to do it; the message has the
  // remedy), with `spec` untouched.
  virtual base::Status wire(const EngineInfo& engine, const std::vector<std::string>& gpu_uuids,
                            ContainerSpec& spec) const = 0;
};

}  // namespace cotenant::ports
