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

  uint32_t count() const { return count_; }
  nvmlDevice_t handle(uint32_t index) { return &devices_[index]; }
  // Is it one of ours? Anything else is an invalid argument, not a crash.
  bool owns(nvmlDevice_t device) const;
  uint32_t index_of(nvmlDevice_t device) const;

  // Connects anew when gpusimd was restarted, and in a forked child.
  nvmlReturn_t call(Request* request, Reply* reply);

 private:
  Session() = default;
  nvmlReturn_t connect();

  uint32_t init_count_ = 0;
  uint32_t count_ = 0;
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

nvmlReturn_t to_nvml(Status status);

}  // namespace gpusim::nvml
