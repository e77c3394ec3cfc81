// The GPU models that gpusim knows, as data. A new model is a new row in models.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpusim {

inline constexpr uint64_t kMiB = 1024 * 1024;
inline constexpr uint32_t kMaxDevices = 64;

// The driver that is imitated. The suffix of the driver version is the one honest marker by which a
// program learns that the GPU is simulated; parsers read the leading number. 580 knows MPS v2 only.
inline constexpr char kDriverVersion[] = "580.95.05-gpusim";
inline constexpr char kNvmlVersion[] = "13.580.95.05-gpusim";
inline constexpr int kCudaVersion = 13000;

struct GpuModel {
  const char* name;            // what `gpusimd --gpus` takes
  const char* marketing_name;  // nvmlDeviceGetName, cuDeviceGetName
  uint32_t total_mib;          // nvmlMemory_v2_t.total
  uint32_t reserved_mib;       // nvmlMemory_v2_t.reserved; never allocatable
  uint32_t cc_major;
  uint32_t cc_minor;
  uint32_t nvml_architecture;  // NVML_DEVICE_ARCH_*: Ampere 7, Ada 8, Hopper 9
  uint32_t sm_count;
  uint32_t pci_device_id;     // device << 16 | vendor, as nvmlPciInfo_t holds it
  uint32_t pci_subsystem_id;  // likewise
  uint32_t client_slots;      // MPS client contexts: 48 up to CUDA 13.0, 60 from 13.1
  // What one CUDA context takes. Counts against the client's pinned-memory limit ("CUDA's own
  // allocations for a context count against it"). A round stand-in, not a measured value.
  uint32_t context_overhead_mib;
  uint32_t mps_server_mib;  // what the MPS server itself holds (public texts: 25..30 MiB per GPU)
  uint32_t bandwidth_mib_per_ms;  // for modelled delays of copies and fills
};

// All known models, in the order in which messages name them.
const GpuModel* gpu_models(size_t* count);

// Case-insensitive. nullptr when unknown.
const GpuModel* find_gpu_model(const char* name, size_t name_length);

}  // namespace gpusim
