// Who holds what of the GPUs of one instance. The only place that decides whether a GPU has room.
//
// Invariants (asserted): the shares on a GPU never exceed its memory; a GPU's mode is never mixed;
// the containers on a GPU never exceed its client slots less one. A value type, pure; copy it for
// what-if.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/gpu_request.h"

namespace cotenant::core {

// Spellings: ECS API reference, GpuDevice.sharingMode.
enum class SharingMode { kIdle, kNvidiaMps, kDedicated };
std::string_view to_string(SharingMode mode);  // "IDLE", "NVIDIA_MPS", "DEDICATED"

// A GPU as its instance registered it.
struct GpuDevice {
  std::string uuid;
  std::string model;
  // What it offers to shares. Nothing: its memory cannot be read, it takes whole-GPU work only.
  std::optional<std::int64_t> memory_mib;
  // Client contexts that MPS serves on it (MPS documentation: 48 on Volta and newer, 60 from CUDA
  // 13.1 on, 16 before Volta).
  int client_slots = 0;
  // Why it takes nothing for the time being: it was lost, or its driver does not answer. Empty: it is
  // in service. What it holds, it keeps.
  std::string unavailable = {};
  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

enum class GpuRefusal { kUnhealthy, kDedicated, kBusy, kMemoryUnknown, kMemory, kClientSlots };

class GpuLedger {
 public:
  GpuLedger() = default;
  // The UUIDs are distinct and not empty.
  explicit GpuLedger(std::vector<GpuDevice> devices);

  std::size_t size() const { return slots_.size(); }
  const GpuDevice& device(std::size_t gpu) const { return slot(gpu).device; }
  std::optional<std::size_t> find(std::string_view uuid) const;

  SharingMode mode(std::size_t gpu) const;
  std::int64_t total_mib(std::size_t gpu) const;
  std::int64_t remaining_mib(std::size_t gpu) const;  // 0 when DEDICATED
  int container_count(std::size_t gpu) const;
  std::vector<std::string> task_ids(std::size_t gpu) const;  // sorted
  int idle_count() const;                                    // of those in service
  // A GPU that is not healthy keeps what it holds and takes nothing more.
  bool is_healthy(std::size_t gpu) const { return slot(gpu).device.unavailable.empty(); }

  // Nothing: it fits.
  std::optional<GpuRefusal> refuses_share(std::size_t gpu, std::int64_t memory_mib,
                                          int containers) const;
  std::optional<GpuRefusal> refuses_whole(std::size_t gpu) const;
  // Could hold so much if nothing were on it.
  bool holds(std::size_t gpu, std::int64_t memory_mib, int containers) const;

  // The caller has asked refuses_*() first, or the task held it before; then it need not be healthy. A
  // share is at least 1 MiB and one container.
  void reserve_share(std::size_t gpu, const std::string& task_id, std::int64_t memory_mib,
                     int containers);
  void reserve_whole(std::size_t gpu, const std::string& task_id);
  // Gives back all that the task holds on this instance.
  void release(const std::string& task_id);

 private:
  struct Share {
    std::int64_t memory_mib = 0;
    int containers = 0;
  };
  struct Slot {
    GpuDevice device;
    std::map<std::string, Share> shares;      // by task id
    std::optional<std::string> dedicated_to;  // a task id
  };

  // Whatever its health is.
  std::optional<GpuRefusal> lacks_room(std::size_t gpu, std::int64_t memory_mib,
                                       int containers) const;
  std::optional<GpuRefusal> is_taken(std::size_t gpu) const;
  const Slot& slot(std::size_t gpu) const;
  Slot& slot(std::size_t gpu);

  std::vector<Slot> slots_;
};

}  // namespace cotenant::core
