#include "adapters/nvml_text.h"

#include <fmt/format.h>

#include "base/units.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

struct ErrorText {
  int code;
  ErrorCode error;
  std::string_view text;
};

constexpr ErrorText kErrorTexts[] = {
    {nvml::kUninitialized, ErrorCode::kUnavailable,
     "the driver was restarted while in use; the next call connects again"},
    {nvml::kNoPermission, ErrorCode::kUnavailable,
     "no permission: run the agent as root, or as a user that may open /dev/nvidia*"},
    {nvml::kDriverNotLoaded, ErrorCode::kUnavailable,
     "the NVIDIA driver is not loaded: see `nvidia-smi` and `modprobe nvidia`; for the simulated "
     "driver "
     "start gpusimd and set GPUSIM_DIR to its folder"},
    {nvml::kTimeout, ErrorCode::kIo, "the driver did not answer in time"},
    {nvml::kFunctionNotFound, ErrorCode::kIo,
     "this NVML library does not have the function: a newer driver is needed"},
    {nvml::kGpuIsLost, ErrorCode::kIo,
     "the GPU is lost (fell off the bus): the machine must be restarted"},
    {nvml::kResetRequired, ErrorCode::kIo, "the GPU must be reset: `nvidia-smi --gpu-reset`"},
    {nvml::kOperatingSystem, ErrorCode::kIo, "the operating system refused the driver's request"},
    {nvml::kLibRmVersionMismatch, ErrorCode::kUnavailable,
     "the NVML library and the loaded kernel driver have different versions, as after an update: "
     "restart the machine or reload the nvidia modules"},
    {nvml::kArgumentVersionMismatch, ErrorCode::kIo,
     "this NVML library does not know the version of the struct: a newer driver is needed"},
};

}  // namespace

ports::DriverInfo parse_driver_version(std::string_view text, int cuda_version) {
  ports::DriverInfo info;
  info.simulated = text.find("gpusim") != std::string_view::npos;
  info.version = info.simulated ? text.substr(0, text.find("-gpusim")) : text;
  info.cuda_version = cuda_version;
  return info;
}

std::optional<std::int64_t> schedulable_mib(const nvml::MemoryV2& memory) {
  if (memory.reserved > memory.total) return std::nullopt;
  const auto mib = static_cast<std::int64_t>((memory.total - memory.reserved) / base::kBytesPerMib);
  return mib > 0 ? std::optional(mib) : std::nullopt;
}

std::int64_t used_mib(const nvml::MemoryV2& memory) {
  const bool partial = memory.used % base::kBytesPerMib != 0;
  return static_cast<std::int64_t>(memory.used / base::kBytesPerMib) + (partial ? 1 : 0);
}

base::Error nvml_error(int code, std::string_view call) {
  for (const ErrorText& known : kErrorTexts) {
    if (known.code == code) {
      return {known.error, fmt::format("{} (NVML error {}): {}", call, code, known.text)};
    }
  }
  return {ErrorCode::kIo, fmt::format("{}: NVML error {}", call, code)};
}

}  // namespace cotenant::adapters
