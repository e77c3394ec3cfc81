// The devices of one gpusimd: what --gpus asked for, with identities derived from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/protocol.h"

namespace gpusim {

// "2xL4", "1xH100,4xA10G", case-insensitive, at most 64 GPUs. The models in order, one per GPU, or
// a text that names the offending part and the known models.
std::variant<std::vector<const GpuModel*>, std::string> parse_gpu_spec(std::string_view spec);

// The default seed: the same machine and the same folder have the same UUIDs at every start.
uint64_t default_seed(std::string_view machine_id, std::string_view folder);

// "GPU-8-4-4-4-12", the same for the same arguments on every machine and in every release.
std::string device_uuid(uint64_t seed, uint32_t index);

std::vector<DeviceInfo> make_devices(const std::vector<const GpuModel*>& models, uint64_t seed);

}  // namespace gpusim
