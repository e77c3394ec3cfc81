#include "core/gpu_ledger.h"

#include <utility>

#include "base/assert.h"

namespace cotenant::core {

std::string_view to_string(SharingMode mode) {
  switch (mode) {
    case SharingMode::kIdle:
      return "IDLE";
    case SharingMode::kNvidiaMps:
      return "NVIDIA_MPS";
    case SharingMode::kDedicated:
      return "DEDICATED";
  }
  return "";
}

GpuLedger::GpuLedger(std::vector<GpuDevice> devices) {
  slots_.reserve(devices.size());
  for (GpuDevice& device : devices) {
    COTENANT_ASSERT(!device.uuid.empty() && !find(device.uuid));
    slots_.push_back(Slot{std::move(device), {}, std::nullopt});
  }
}

const GpuLedger::Slot& GpuLedger::slot(std::size_t gpu) const {
  COTENANT_ASSERT(gpu < slots_.size());
  return slots_[gpu];
}

GpuLedger::Slot& GpuLedger::slot(std::size_t gpu) {
  COTENANT_ASSERT(gpu < slots_.size());
  return slots_[gpu];
}

std::optional<std::size_t> GpuLedger::find(std::string_view uuid) const {
  for (std::size_t gpu = 0; gpu < slots_.size(); ++gpu) {
    if (slots_[gpu].device.uuid == uuid) return gpu;
  }
  return std::nullopt;
}

SharingMode GpuLedger::mode(std::size_t gpu) const {
  const Slot& held = slot(gpu);
  if (held.dedicated_to) return SharingMode::kDedicated;
  return held.shares.empty() ? SharingMode::kIdle : SharingMode::kNvidiaMps;
}

std::int64_t GpuLedger::total_mib(std::size_t gpu) const {
  return slot(gpu).device.memory_mib.value_or(0);
}

std::int64_t GpuLedger::remaining_mib(std::size_t gpu) const {
  const Slot& held = slot(gpu);
  if (held.dedicated_to) return 0;
  std::int64_t remaining = total_mib(gpu);
  for (const auto& [task_id, share] : held.shares) remaining -= share.memory_mib;
  return remaining;
}

int GpuLedger::container_count(std::size_t gpu) const {
  const Slot& held = slot(gpu);
  if (held.dedicated_to) return 1;
  int count = 0;
  for (const auto& [task_id, share] : held.shares) count += share.containers;
  return count;
}

std::vector<std::string> GpuLedger::task_ids(std::size_t gpu) const {
  const Slot& held = slot(gpu);
  if (held.dedicated_to) return {*held.dedicated_to};
  std::vector<std::string> ids;
  for (const auto& [task_id, share] : held.shares) ids.push_back(task_id);
  return ids;
}

int GpuLedger::idle_count() const {
  int count = 0;
  for (std::size_t gpu = 0; gpu < slots_.size(); ++gpu) {
    if (is_healthy(gpu) && mode(gpu) == SharingMode::kIdle) ++count;
  }
  return count;
}

std::optional<GpuRefusal> GpuLedger::refuses_share(std::size_t gpu, std::int64_t memory_mib,
                                                   int containers) const {
  if (!is_healthy(gpu)) return GpuRefusal::kUnhealthy;
  return lacks_room(gpu, memory_mib, containers);
}

bool GpuLedger::holds(std::size_t gpu, std::int64_t memory_mib, int containers) const {
  const GpuDevice& device = slot(gpu).device;
  return device.memory_mib.value_or(0) >= memory_mib && containers <= device.client_slots - 1;
}

std::optional<GpuRefusal> GpuLedger::lacks_room(std::size_t gpu, std::int64_t memory_mib,
                                                int containers) const {
  const Slot& held = slot(gpu);
  if (!held.device.memory_mib) return GpuRefusal::kMemoryUnknown;
  if (held.dedicated_to) return GpuRefusal::kDedicated;
  if (remaining_mib(gpu) < memory_mib) return GpuRefusal::kMemory;
  // One slot stays free for the probe.
  if (container_count(gpu) + containers > held.device.client_slots - 1) {
    return GpuRefusal::kClientSlots;
  }
  return std::nullopt;
}

std::optional<GpuRefusal> GpuLedger::refuses_whole(std::size_t gpu) const {
  return is_healthy(gpu) ? is_taken(gpu) : GpuRefusal::kUnhealthy;
}

std::optional<GpuRefusal> GpuLedger::is_taken(std::size_t gpu) const {
  switch (mode(gpu)) {
    case SharingMode::kIdle:
      return std::nullopt;
    case SharingMode::kNvidiaMps:
      return GpuRefusal::kBusy;
    case SharingMode::kDedicated:
      return GpuRefusal::kDedicated;
  }
  return GpuRefusal::kBusy;
}

void GpuLedger::reserve_share(std::size_t gpu, const std::string& task_id, std::int64_t memory_mib,
                              int containers) {
  COTENANT_ASSERT(memory_mib > 0 && containers > 0);
  COTENANT_ASSERT(!lacks_room(gpu, memory_mib, containers));
  const bool fresh = slot(gpu).shares.emplace(task_id, Share{memory_mib, containers}).second;
  COTENANT_ASSERT(fresh);
}

void GpuLedger::reserve_whole(std::size_t gpu, const std::string& task_id) {
  COTENANT_ASSERT(!is_taken(gpu));
  slot(gpu).dedicated_to = task_id;
}

void GpuLedger::release(const std::string& task_id) {
  for (Slot& held : slots_) {
    held.shares.erase(task_id);
    if (held.dedicated_to == task_id) held.dedicated_to.reset();
  }
}

}  // namespace cotenant::core
