// GPU wiring that only writes NVIDIA_VISIBLE_DEVICES, for tests. Any thread.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ports/gpu_wiring.h"

namespace cotenant::fakes {

class FakeGpuWiring final : public ports::GpuWiring {
 public:
  base::Status wire(const ports::EngineInfo&, const std::vector<std::string>& gpu_uuids,
                    ports::ContainerSpec& spec) const override {
    const std::lock_guard lock(mutex_);
    if (error_) return base::fail(*error_);
    std::string value;
    for (const std::string& uuid : gpu_uuids) value += (value.empty() ? "" : ",") + uuid;
    if (value.empty()) value = "void";
    ports::set_environment(spec, "NVIDIA_VISIBLE_DEVICES", value);
    return {};
  }

  // All calls fail with it; nothing: they work.
  void set_error(std::optional<base::Error> error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<base::Error> error_;
};

}  // namespace cotenant::fakes
