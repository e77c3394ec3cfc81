#include "adapters/nvml_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "adapters/nvml_text.h"
#include "base/limits.h"
#include "base/log.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

template <std::size_t kSize>
std::string text_of(const std::array<char, kSize>& buffer) {
  return {buffer.data(), ::strnlen(buffer.data(), buffer.size())};
}

// Answers that concern one GPU only.
bool is_gpu_unusable(nvml::Return code) {
  return code == nvml::kGpuIsLost || code == nvml::kNoPermission || code == nvml::kNotFound ||
         code == nvml::kResetRequired || code == nvml::kUnknown;
}

// Answers that say that the connection to the driver is gone.
bool is_disconnected(nvml::Return code) {
  return code == nvml::kUninitialized || code == nvml::kDriverNotLoaded ||
         code == nvml::kLibRmVersionMismatch;
}

// Answers that mean that a driver or GPU does not have what was asked for; anything else but
// success is trouble.
bool is_absent(nvml::Return code) {
  return code == nvml::kNotSupported || code == nvml::kFunctionNotFound;
}

}  // namespace

NvmlDriver::NvmlDriver(std::string library_path) : library_path_(std::move(library_path)) {}

NvmlDriver::~NvmlDriver() {
  close();
}

template <class Function, class... Args>
NvmlDriver::Answer NvmlDriver::call(const char* symbol, Args... args) const {
  auto* function = reinterpret_cast<Function*>(::dlsym(library_, symbol));
  if (function == nullptr) return {nvml::kFunctionNotFound, symbol};
  return {function(args...), symbol};
}

base::Status NvmlDriver::open() {
  if (initialised_) return {};
  if (library_ == nullptr) library_ = ::dlopen(library_path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* reason = ::dlerror();
    return base::fail(
        ErrorCode::kUnavailable,
        fmt::format("cannot load the NVML library ({}): install the NVIDIA driver, or name "
                    "the library by --nvml-library",
                    reason == nullptr ? library_path_ : reason));
  }
  const Answer answer = call<nvml::Init_v2>("nvmlInit_v2");
  initialised_ = static_cast<bool>(answer);
  if (initialised_) return {};
  if (answer.code == nvml::kFunctionNotFound) {
    return base::fail(
        ErrorCode::kUnavailable,
        fmt::format("{} is not an NVML library: it has no nvmlInit_v2", library_path_));
  }
  // After an update of the driver the file is another one; only then is the library let go of.
  // Otherwise it stays loaded: that costs nothing, and not every library survives being unloaded.
  if (answer.code == nvml::kLibRmVersionMismatch) ::dlclose(std::exchange(library_, nullptr));
  return base::fail(nvml_error(answer.code, answer.call));
}

void NvmlDriver::close() {
  if (std::exchange(initialised_, false)) call<nvml::Shutdown>("nvmlShutdown");
}

base::Status NvmlDriver::with_driver(const std::function<Answer()>& steps) {
  const std::lock_guard lock(mutex_);
  for (bool retried = false;; retried = true) {
    if (auto opened = open(); !opened) return opened;
    const Answer answer = steps();
    if (answer) return {};
    // When not one GPU answers it is the connection that is stale, or all are lost.
    const bool reconnect = is_disconnected(answer.code) || is_gpu_unusable(answer.code);
    if (reconnect) close();
    if (retried || !reconnect) return base::fail(nvml_error(answer.code, answer.call));
  }
}

base::Result<ports::DriverInfo> NvmlDriver::driver() {
  std::array<char, nvml::kDriverVersionBytes> version{};
  int cuda_version = 0;
  const base::Status status = with_driver([&]() -> Answer {
    const Answer read = call<nvml::SystemGetDriverVersion>(
        "nvmlSystemGetDriverVersion", version.data(), nvml::kDriverVersionBytes);
    if (!read) return read;
    return call<nvml::SystemGetCudaDriverVersion_v2>("nvmlSystemGetCudaDriverVersion_v2",
                                                     &cuda_version);
  });
  if (!status) return base::fail(status.error());
  return parse_driver_version(text_of(version), cuda_version);
}

NvmlDriver::Answer NvmlDriver::for_each_gpu(
    const std::function<Answer(nvml::Device, int, const std::string&)>& visit) {
  unsigned count = 0;
  if (Answer counted = call<nvml::DeviceGetCount_v2>("nvmlDeviceGetCount_v2", &count); !counted) {
    return counted;
  }
  if (count > base::limits::kGpusPerInstance) {
    base::log::warn("NVML lists {} GPUs; the first {} are used", count,
                    base::limits::kGpusPerInstance);
    count = base::limits::kGpusPerInstance;
  }
  bool any_answered = count == 0;
  Answer last_refusal;
  for (int index = 0; index < static_cast<int>(count); ++index) {
    nvml::Device device = nullptr;
    std::array<char, nvml::kUuidBytes> uuid{};
    Answer answer = call<nvml::DeviceGetHandleByIndex_v2>("nvmlDeviceGetHandleByIndex_v2",
                                                          static_cast<unsigned>(index), &device);
    if (answer) {
      answer =
          call<nvml::DeviceGetUUID>("nvmlDeviceGetUUID", device, uuid.data(), nvml::kUuidBytes);
    }
    if (answer) answer = visit(device, index, text_of(uuid));
    if (answer) {
      any_answered = true;
      left_out_.erase(index);
    } else if (!is_gpu_unusable(answer.code)) {
      return answer;
    } else {
      last_refusal = answer;
      if (!left_out_.insert(index).second) continue;
      base::log::warn("GPU {} is left out: {}", index,
                      nvml_error(answer.code, answer.call).message);
    }
  }
  return any_answered ? Answer{} : last_refusal;
}

NvmlDriver::Answer NvmlDriver::read_gpu(nvml::Device device, ports::GpuInfo& gpu) const {
  std::array<char, nvml::kNameBytes> name{};
  Answer answer =
      call<nvml::DeviceGetName>("nvmlDeviceGetName", device, name.data(), nvml::kNameBytes);
  if (!answer) return answer;
  gpu.model = text_of(name);

  nvml::PciInfo pci{};
  answer = call<nvml::DeviceGetPciInfo_v3>("nvmlDeviceGetPciInfo_v3", device, &pci);
  if (!answer) return answer;
  gpu.pci_bus_id.assign(pci.bus_id, ::strnlen(pci.bus_id, sizeof pci.bus_id));

  answer = call<nvml::DeviceGetCudaComputeCapability>("nvmlDeviceGetCudaComputeCapability", device,
                                                      &gpu.compute_capability_major,
                                                      &gpu.compute_capability_minor);
  if (!answer) return answer;

  // From here on an answer may be absent: GPUs with unified memory have no memory of their own, old
  // drivers and GPUs know neither MIG nor vGPU (and are then neither). Whether it is a vGPU is left
  // open by any other error as well (as the ECS agent does): it must not cost the GPU.
  nvml::MemoryV2 memory{};
  memory.version = nvml::kMemoryV2Version;
  answer = call<nvml::DeviceGetMemoryInfo_v2>("nvmlDeviceGetMemoryInfo_v2", device, &memory);
  if (!answer && !is_absent(answer.code)) return answer;
  if (answer) gpu.memory_mib = schedulable_mib(memory);

  unsigned mode = 0;
  unsigned pending = 0;
  answer = call<nvml::DeviceGetMigMode>("nvmlDeviceGetMigMode", device, &mode, &pending);
  if (!answer && !is_absent(answer.code)) return answer;
  gpu.mig_enabled = answer && mode == nvml::kMigModeEnabled;

  answer =
      call<nvml::DeviceGetVirtualizationMode>("nvmlDeviceGetVirtualizationMode", device, &mode);
  if (is_disconnected(answer.code) || answer.code == nvml::kGpuIsLost) return answer;
  gpu.is_vgpu = answer && mode == nvml::kVirtualizationModeVgpu;
  return {};
}

base::Result<std::vector<ports::GpuInfo>> NvmlDriver::gpus() {
  std::vector<ports::GpuInfo> gpus;
  const base::Status status = with_driver([&] {
    gpus.clear();
    return for_each_gpu([&](nvml::Device device, int index, const std::string& uuid) {
      ports::GpuInfo gpu;
      gpu.uuid = uuid;
      gpu.index = index;
      const Answer answer = read_gpu(device, gpu);
      if (answer) gpus.push_back(std::move(gpu));
      return answer;
    });
  });
  if (!status) return base::fail(status.error());
  return gpus;
}

base::Result<std::vector<ports::GpuMemoryUse>> NvmlDriver::memory_use() {
  std::vector<ports::GpuMemoryUse> uses;
  const base::Status status = with_driver([&] {
    uses.clear();
    return for_each_gpu([&](nvml::Device device, int, const std::string& uuid) -> Answer {
      nvml::MemoryV2 memory{};
      memory.version = nvml::kMemoryV2Version;
      const Answer answer =
          call<nvml::DeviceGetMemoryInfo_v2>("nvmlDeviceGetMemoryInfo_v2", device, &memory);
      if (!answer && !is_absent(answer.code)) return answer;
      if (answer) uses.push_back({uuid, used_mib(memory)});
      return {};
    });
  });
  if (!status) return base::fail(status.error());
  return uses;
}

}  // namespace cotenant::adapters
