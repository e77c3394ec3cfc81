// NVML's answers in our words: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/nvml_abi.h"
#include "base/result.h"
#include "ports/gpu_driver.h"

namespace cotenant::adapters {

// "580.95.05-gpusim" is version 580.95.05 of the simulated driver; NVIDIA's own has no suffix.
ports::DriverInfo parse_driver_version(std::string_view text, int cuda_version);

// What containers may have of a GPU: total - reserved, in whole MiB. Nothing when the numbers make
// no sense.
std::optional<std::int64_t> schedulable_mib(const nvml::MemoryV2& memory);
// What is in use, rounded up.
std::int64_t used_mib(const nvml::MemoryV2& memory);

// The error for `call` (the symbol's name) that returned `code`: kUnavailable with the remedy where
// the driver is not there or not usable by us, else kIo.
base::Error nvml_error(int code, std::string_view call);

}  // namespace cotenant::adapters
