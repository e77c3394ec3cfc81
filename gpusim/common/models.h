// The GPU models that gpusim knows, as data. A new model is a new row in models.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpusim {

inline constexpr uint64_t kMiB = 1024 * 1024;
inline constexpr uint32_t kMaxDevices = 64;  // MIG devices count

// The driver that is imitated unless another is asked for (driver_versions.h).
inline constexpr char kDriverVersion[] = "580.95.05-gpusim";
inline constexpr char kNvmlVersion[] = "13.580.95.05-gpusim";
inline constexpr int kCudaVersion = 13000;

inline constexpr size_t kMigProfiles = 5;

struct GpuModel {
  const char* name;            // what `gpusimd --gpus` takes
  const char* marketing_name;  // nvmlDeviceGetName, cuDeviceGetName
  uint32_t total_mib;          // nvmlMemory_v2_t.total
  uint32_t reserved_mib;       // nvmlMemory_v2_t.reserved; never allocatable
  uint32_t cc_major;
  uint32_t cc_minor;
  uint32_t nvml_architecture;  // NVML_DEVICE_ARCH_*: Turing 6, Ampere 7, Ada 8, Hopper 9, ...
  uint32_t sm_count;
  uint32_t pci_device_id;     // device << 16 | vendor, as nvmlPciInfo_t holds it
  uint32_t pci_subsystem_id;  // likewise
  // What one CUDA context takes. Counts against the client's pinned-memory limit ("CUDA's own
  // allocations for a context count against it"). A round stand-in, not a measured value.
  uint32_t context_overhead_mib;
  uint32_t mps_server_mib;  // what the MPS server itself holds (public texts: 25..30 MiB per GPU)
  uint32_t bandwidth_mib_per_ms;  // for modelled delays of copies and fills
  // MIG profiles of 1, 2, 3, 4 and 7 of the 7 compute slices; nullptr: no MIG.
  const char* mig_profiles[kMigProfiles];
};

// How a MIG profile divides its GPU: compute slices of 7, memory slices of 8.
struct MigSlices {
  uint32_t compute;
  uint32_t memory;
};
inline constexpr MigSlices kMigSlices[kMigProfiles] = {{1, 1}, {2, 2}, {3, 4}, {4, 4}, {7, 8}};

// All known models, in the order in which messages name them.
const GpuModel* gpu_models(size_t* count);

// Case-insensitive. nullptr when unknown.
const GpuModel* find_gpu_model(const char* name, size_t name_length);

// MPS client contexts a device carries: 16 before Volta; 48 from Volta on; 60 from CUDA 13.1 on.
uint32_t mps_client_slots(uint32_t cc_major, int cuda_version);

}  // namespace gpusim
