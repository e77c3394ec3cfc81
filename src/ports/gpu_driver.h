// What the agent asks of the GPU driver. Implemented by adapters/nvml_driver (NVML).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cotenant::ports {

struct DriverInfo {
  std::string version;   // "580.95.05"
  int cuda_version = 0;  // 13000 is CUDA 13.0
  bool simulated = false;
};

struct GpuInfo {
  std::string uuid;   // "GPU-8-4-4-4-12"
  std::string model;  // "NVIDIA L4"
  std::string pci_bus_id;
  int index = 0;
  // NVML v2 total - reserved, in MiB; nothing when the memory cannot be read (such a GPU takes
  // whole-GPU work only).
  std::optional<std::int64_t> memory_mib;
  int compute_capability_major = 0;
  int compute_capability_minor = 0;
  bool is_vgpu = false;
  bool mig_enabled = false;
};

struct GpuMemoryUse {
  std::string uuid;
  std::int64_t used_mib = 0;  // by everybody, as NVML v2 says
};

// Any thread. Errors: kUnavailable (no library or no driver; the message says which), kIo.
class GpuDriver {
 public:
  virtual ~GpuDriver() = default;
  virtual base::Result<DriverInfo> driver() = 0;
  virtual base::Result<std::vector<GpuInfo>> gpus() = 0;
  virtual base::Result<std::vector<GpuMemoryUse>> memory_use() = 0;
};

}  // namespace cotenant::ports
