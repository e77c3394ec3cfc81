// The devices of one gpusimd: what --gpus or --file asked for, with identities from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/protocol.h"

namespace gpusim {

// One GPU that was asked for. 0 and "": the model's own.
struct GpuSpec {
  const GpuModel* model = nullptr;
  uint32_t vgpu_gib = 0;    // a vGPU slice of so much memory, as seen in the guest
  std::vector<size_t> mig;  // profiles (indexes into the model's) that it is divided into
  uint32_t total_mib = 0;
  uint32_t reserved_mib = UINT32_MAX;
  uint32_t context_mib = UINT32_MAX;
  uint32_t mps_server_mib = UINT32_MAX;
  std::string uuid;
};

// "2xL4", "1xH100,4xA10G", "2xL4-6Q" (vGPU slices of 6 GiB), "1xA100-40:3g.20gb+1g.5gb" (MIG
// devices), case-insensitive. One spec per GPU, at most 64 devices; or a text that names the
// offending part and what is known.
std::variant<std::vector<GpuSpec>, std::string> parse_gpu_spec(std::string_view spec);

// The one model of a spec's part ("L4", "L4-6Q", "A100-40:1g.5gb"); or a text why not.
std::variant<GpuSpec, std::string> parse_gpu_model(std::string_view text);

// The default seed: the same machine and the same folder have the same UUIDs at every start.
uint64_t default_seed(std::string_view machine_id, std::string_view folder);

// "GPU-8-4-4-4-12", the same for the same arguments on every machine and in every release. A higher
// generation is the identity of a GPU that came back as another one.
std::string device_uuid(uint64_t seed, uint32_t index, uint32_t generation = 0);

// The GPUs in order, then their MIG devices.
std::vector<DeviceInfo> make_devices(const std::vector<GpuSpec>& gpus, uint64_t seed,
                                     int cuda_version = kCudaVersion);

size_t count_devices(const std::vector<GpuSpec>& gpus);

std::string known_models();

}  // namespace gpusim
