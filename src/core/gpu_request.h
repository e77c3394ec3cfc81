// What a container asks of the GPUs, and what a task asks in sum.
// Rules: ECS API reference, ResourceRequirement, SharingStrategy, NvidiaMpsAllocation.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

namespace cotenant::core {

struct NoGpu {
  friend bool operator==(const NoGpu&, const NoGpu&) = default;
};

// `value: "2"` or `value: "ALL"`: exclusive use of whole GPUs.
struct WholeGpus {
  int count = 0;     // 0 when `all`
  bool all = false;  // every GPU of the instance
  friend bool operator==(const WholeGpus&, const WholeGpus&) = default;
};

// `sharingStrategy.nvidiaMps`: a part of one GPU.
struct SharedGpu {
  std::int64_t memory_mib = 0;         // ceiling and reservation
  std::optional<int> compute_percent;  // a ceiling only: placement does not look at it
  friend bool operator==(const SharedGpu&, const SharedGpu&) = default;
};

using GpuRequest = std::variant<NoGpu, WholeGpus, SharedGpu>;

// A task's need: its sharing containers go onto one GPU, which must have room for their sum; or
// whole GPUs; or nothing. Registration has made sure that a task does not mix.
struct TaskGpuNeed {
  std::int64_t shared_memory_mib = 0;
  int shared_containers = 0;
  int whole_count = 0;
  bool whole_all = false;

  bool is_shared() const { return shared_containers > 0; }
  bool is_whole() const { return whole_all || whole_count > 0; }
  bool is_none() const { return !is_shared() && !is_whole(); }
};

}  // namespace cotenant::core
