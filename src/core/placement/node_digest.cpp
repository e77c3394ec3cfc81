#include "core/placement/node_digest.h"

#include <algorithm>

namespace cotenant::core {
namespace {

GpuKind kind_of(const FleetGpu& gpu, bool can_share, std::size_t index) {
  GpuKind kind;
  kind.milli = gpu.left_milli;
  kind.count = 1;
  kind.lowest = static_cast<std::uint8_t>(index);
  kind.takes_share = can_share && gpu.takes_share();
  kind.takes_whole = gpu.takes_whole();
  if (kind.takes_share) {
    // One client slot stays free for the probe.
    const int free_clients = gpu.client_slots - gpu.containers - 1;
    kind.left_mib = gpu.left_mib;
    kind.total_mib = gpu.total_mib;
    kind.free_clients = static_cast<std::int16_t>(
        std::min(free_clients, static_cast<int>(base::limits::kContainersPerTask)));
  }
  return kind;
}

bool same_kind(const GpuKind& a, const GpuKind& b) {
  return a.left_mib == b.left_mib && a.total_mib == b.total_mib && a.milli == b.milli &&
         a.free_clients == b.free_clients && a.takes_share == b.takes_share &&
         a.takes_whole == b.takes_whole;
}

}  // namespace

NodeDigest digest_of(const Fleet& fleet, NodeSlot slot, GpuKind* kinds) {
  const FleetNode& node = fleet.node(slot);
  NodeDigest digest;
  digest.node_class = node.node_class;
  digest.gpu_count = node.gpu_count;
  digest.whole_gpus = node.whole_gpus;
  if (!node.placeable) return digest;
  digest.cpu_free = node.cpu_free;
  const FleetGpu* gpus = fleet.gpus(slot);
  for (std::size_t i = 0; i < node.gpu_count; ++i) {
    const GpuKind kind = kind_of(gpus[i], node.can_share, i);
    if (kind.takes_share) digest.most_left_mib = std::max(digest.most_left_mib, kind.left_mib);
    GpuKind* const end = kinds + digest.kinds;
    GpuKind* const same =
        std::find_if(kinds, end, [&](const GpuKind& each) { return same_kind(each, kind); });
    if (same != end) {
      ++same->count;
      continue;
    }
    *end = kind;
    ++digest.kinds;
  }
  return digest;
}

void DigestTable::renew(const Fleet& fleet, NodeSlot slot, Entry& entry) {
  std::array<GpuKind, base::limits::kGpusPerInstance> kinds;
  entry.digest = digest_of(fleet, slot, kinds.data());
  entry.many.clear();
  if (entry.digest.kinds <= entry.few.size()) {
    std::copy_n(kinds.begin(), entry.digest.kinds, entry.few.begin());
  } else {
    entry.many.assign(kinds.begin(), kinds.begin() + entry.digest.kinds);
  }
  entry.change = fleet.last_change(slot);
  entry.value_epoch = 0;
}

std::size_t DigestTable::bytes() const {
  std::size_t bytes = parts_.capacity() * sizeof(parts_[0]);
  for (const std::vector<Entry>& part : parts_) {
    bytes += part.capacity() * sizeof(Entry);
    for (const Entry& entry : part) bytes += entry.many.capacity() * sizeof(GpuKind);
  }
  return bytes;
}

}  // namespace cotenant::core
