// ports::GpuDriver by NVML, loaded at run time: the agent also runs where no driver is installed,
// and the simulated driver is just another library path.
//
// Any thread; calls are serialised. The library is opened and nvmlInit_v2 called at the first call
// that works, once, and again after the driver was restarted (UNINITIALIZED, DRIVER_NOT_LOADED) or
// updated (version mismatch: the file is opened anew). The destructor shuts NVML down. A symbol
// that an older driver lacks counts as NOT_SUPPORTED.
//
// Errors: those of the port, with the remedy (nvml_text.h). A GPU that is lost or that we may not
// open is left out with a warning, so that it does not take the healthy ones with it; when none
// answers, even after a reconnect, that is the error. NVML has no time limits: a call hangs when
// the kernel driver hangs.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "adapters/nvml_abi.h"
#include "ports/gpu_driver.h"

namespace cotenant::adapters {

class NvmlDriver final : public ports::GpuDriver {
 public:
  explicit NvmlDriver(std::string library_path = "libnvidia-ml.so.1");
  ~NvmlDriver() override;
  NvmlDriver(const NvmlDriver&) = delete;
  NvmlDriver& operator=(const NvmlDriver&) = delete;

  base::Result<ports::DriverInfo> driver() override;
  base::Result<std::vector<ports::GpuInfo>> gpus() override;
  // GPUs whose memory cannot be read are not in the answer.
  base::Result<std::vector<ports::GpuMemoryUse>> memory_use() override;

 private:
  // One call of NVML's: the return value, and the symbol's name for messages.
  struct Answer {
    nvml::Return code = nvml::kSuccess;
    const char* call = "";
    explicit operator bool() const { return code == nvml::kSuccess; }
  };
  template <class Function, class... Args>
  Answer call(const char* symbol, Args... args) const;

  base::Status open();
  void close();
  // Runs `steps` with NVML open; once more after a reconnect when the driver was restarted
  // meanwhile.
  base::Status with_driver(const std::function<Answer()>& steps);
  // Calls `visit` for each GPU that answers.
  Answer for_each_gpu(const std::function<Answer(nvml::Device, int, const std::string&)>& visit);
  Answer read_gpu(nvml::Device device, ports::GpuInfo& gpu) const;

  const std::string library_path_;
  std::mutex mutex_;
  void* library_ = nullptr;  // stays loaded when this object goes
  bool initialised_ = false;
  std::set<int> left_out_;  // warned about already
};

}  // namespace cotenant::adapters
