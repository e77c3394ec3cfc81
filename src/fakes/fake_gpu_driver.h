// A GPU driver in memory, for tests. Any thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ports/gpu_driver.h"

namespace cotenant::fakes {

class FakeGpuDriver final : public ports::GpuDriver {
 public:
  explicit FakeGpuDriver(std::vector<ports::GpuInfo> gpus = {}) : gpus_(std::move(gpus)) {
    driver_.version = "580.95.05";
    driver_.cuda_version = 13000;
    driver_.simulated = true;
  }

  // An L4 of 22563 MiB.
  static ports::GpuInfo l4(std::string uuid) {
    ports::GpuInfo gpu;
    gpu.uuid = std::move(uuid);
    gpu.model = "NVIDIA L4";
    gpu.memory_mib = 22563;
    gpu.compute_capability_major = 8;
    gpu.compute_capability_minor = 9;
    return gpu;
  }

  base::Result<ports::DriverInfo> driver() override {
    const std::lock_guard lock(mutex_);
    if (error_) return base::fail(*error_);
    return driver_;
  }
  base::Result<std::vector<ports::GpuInfo>> gpus() override {
    const std::lock_guard lock(mutex_);
    if (error_) return base::fail(*error_);
    return gpus_;
  }
  base::Result<std::vector<ports::GpuMemoryUse>> memory_use() override {
    const std::lock_guard lock(mutex_);
    if (error_) return base::fail(*error_);
    return memory_use_;
  }

  // All calls fail with it; nothing: they work.
  void set_error(std::optional<base::Error> error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  void set_driver(ports::DriverInfo driver) {
    const std::lock_guard lock(mutex_);
    driver_ = std::move(driver);
  }
  void set_gpus(std::vector<ports::GpuInfo> gpus) {
    const std::lock_guard lock(mutex_);
    gpus_ = std::move(gpus);
  }
  void set_memory_use(std::vector<ports::GpuMemoryUse> use) {
    const std::lock_guard lock(mutex_);
    memory_use_ = std::move(use);
  }

 private:
  std::mutex mutex_;
  ports::DriverInfo driver_;
  std::vector<ports::GpuInfo> gpus_;
  std::vector<ports::GpuMemoryUse> memory_use_;
  std::optional<base::Error> error_;
};

}  // namespace cotenant::fakes
