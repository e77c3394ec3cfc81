// How a process of the `process` runtime is given its GPUs: by CUDA_VISIBLE_DEVICES with their UUIDs
// (which CUDA heeds and a program can change: there is no isolation), and, where a CDI spec knows them,
// by its variables and mounts (process_plan.h). Without a spec the driver of the machine is what the
// program finds by itself. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ports/gpu_wiring.h"

namespace cotenant::adapters {

class ProcessGpuWiring final : public ports::GpuWiring {
 public:
  explicit ProcessGpuWiring(std::string cdi_dir);
  base::Status wire(const ports::EngineInfo& engine, const std::vector<std::string>& gpu_uuids,
                    ports::ContainerSpec& spec) const override;

 private:
  const std::string cdi_dir_;
};

}  // namespace cotenant::adapters
