#include "core/placement/fleet_mirror.h"

#include <algorithm>
#include <string>

#include "base/limits.h"

namespace cotenant::core {

NodeImage image_of(const Instance& instance) {
  const InstanceRegistration& registration = instance.registration;
  NodeImage image;
  image.cpu_total = registration.cpu_units;
  image.cpu_free = instance.free_cpu_units();
  image.memory_total_mib = registration.memory_mib;
  image.memory_free_mib = instance.free_memory_mib();
  image.active = instance.status == InstanceStatus::kActive;
  image.connected = instance.agent_connected;
  image.can_share = registration.attributes.count(std::string(kSharingAttribute)) > 0;
  for (const auto* attributes : {&registration.attributes, &instance.custom_attributes}) {
    for (const auto& [name, value] : *attributes) {
      // Lengths, so that no two sets give the same text.
      image.attributes += std::to_string(name.size()) + ' ' + std::to_string(value.size()) + ' ';
      image.attributes += name + value;
    }
    image.attributes += '|';
  }
  const GpuLedger& ledger = instance.gpus;
  if (ledger.size() > 0) image.model = ledger.device(0).model;
  for (std::size_t i = 0; i < ledger.size(); ++i) {
    FleetGpu gpu;
    // Both are bounded where they come in (base/limits.h).
    gpu.total_mib =
        static_cast<std::int32_t>(std::min(ledger.total_mib(i), base::limits::kGpuMemoryMibMax));
    gpu.client_slots = static_cast<std::int16_t>(
        std::min<std::int64_t>(ledger.device(i).client_slots, base::limits::kClientSlotsMax));
    gpu.dedicated = ledger.mode(i) == SharingMode::kDedicated;
    gpu.left_mib =
        gpu.dedicated ? gpu.total_mib : static_cast<std::int32_t>(ledger.remaining_mib(i));
    gpu.containers =
        gpu.dedicated ? std::int16_t{0} : static_cast<std::int16_t>(ledger.container_count(i));
    gpu.healthy = ledger.is_healthy(i);
    image.gpus.push_back(gpu);
  }
  return image;
}

}  // namespace cotenant::core
