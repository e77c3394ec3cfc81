// Decides how a container gets its GPUs, in this order:
//  1. by CDI name, where the engine reads the very folder that the agent's spec lies in;
//  2. by the spec's edits in the create request, for a spec that needs no hooks;
//  3. by the `nvidia` runtime and NVIDIA_VISIBLE_DEVICES;
//  4. not at all: a refusal that says why each way is closed and what to do.
// In all cases NVIDIA_VISIBLE_DEVICES is set, because an image or a task definition that names more
// GPUs there would get them wherever the nvidia runtime is the engine's default.
#pragma once

#include <string>
#include <vector>

#include "adapters/cdi_spec.h"
#include "base/result.h"
#include "ports/container_runtime.h"
#include "ports/gpu_wiring.h"

namespace cotenant::adapters {

inline constexpr const char* kNvidiaCdiKind = "nvidia.com/gpu";

struct GpuWiringInput {
  std::vector<std::string> engine_cdi_dirs;
  std::vector<std::string> engine_runtimes;
  std::string cdi_dir;                 // the agent's
  std::vector<std::string> gpu_uuids;  // at least one
  // The edits for these GPUs, or why there are none.
  base::Result<CdiEdits> edits;
  std::string engine_name = {};
};

// Pure. On an error (kUnavailable) `spec` is untouched.
base::Status wire_gpus(const GpuWiringInput& input, ports::ContainerSpec& spec);

// No GPU, whatever the image asks for. Pure.
void wire_no_gpu(ports::ContainerSpec& spec);

// Reads the folder at each call, because the toolkit rewrites its spec when the driver changes.
class CdiGpuWiring final : public ports::GpuWiring {
 public:
  explicit CdiGpuWiring(std::string cdi_dir);
  base::Status wire(const ports::EngineInfo& engine, const std::vector<std::string>& gpu_uuids,
                    ports::ContainerSpec& spec) const override;

 private:
  const std::string cdi_dir_;
};

}  // namespace cotenant::adapters
