// The library's one connection to gpusimd and the devices it saw at nvmlInit.
#pragma once

#include <pthread.h>

#include "common/visible_devices.h"
#include "nvml/nvml_types.h"

struct nvmlDevice_st {
  gpusim::VisibleDevice device;
};

namespace gpusim::nvml {

class Session {
 public:
  static Session& instance();  // never destroyed: programs call NVML from their own destructors

  nvmlReturn_t init();
  nvmlReturn_t shutdown();
  bool initialized() const { return init_count_ > 0; }

  // GPUs; the handles of MIG devices follow theirs.
  uint32_t count() const { return gpu_count_; }
  uint32_t count_with_mig() const { return count_; }
  nvmlDevice_t handle(uint32_t index) { return &devices_[index]; }
  // Is it one of ours? Anything else is an invalid argument, not a crash.
  bool owns(nvmlDevice_t device) const;
  uint32_t index_of(nvmlDevice_t device) const;

  // The state of the device; kGpuLost when it is off the bus, or came back as another one.
  nvmlReturn_t get_state(nvmlDevice_t device, DeviceState* state);
  const DriverInfo& driver() const { return driver_; }
  // For functions that came with a later driver: NVML_ERROR_FUNCTION_NOT_FOUND on an earlier one.
  nvmlReturn_t since(uint32_t driver_major) const;

  // Connects anew when gpusimd was restarted, and in a forked child.
  nvmlReturn_t call(Request* request, Reply* reply);

 private:
  Session() = default;
  nvmlReturn_t connect();

  uint32_t init_count_ = 0;
  uint32_t count_ = 0;
  uint32_t gpu_count_ = 0;
  DriverInfo driver_ = {};
  DriverClient client_;
  nvmlDevice_st devices_[kMaxDevices] = {};
};

// Held by every entry point: NVML is thread-safe.
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
};

// Is the handle one of ours, `out` not null, and the GPU there? The first thing of nearly every call.
nvmlReturn_t usable(nvmlDevice_t device, const void* out);
// And, where it says what the GPU does: is it in a working state?
nvmlReturn_t usable_state(nvmlDevice_t device, const void* out, DeviceState* state);

nvmlReturn_t to_nvml(Status status);

}  // namespace gpusim::nvml
