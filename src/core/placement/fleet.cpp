#include "core/placement/fleet.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace cotenant::core {
namespace {

bool is_indexed(const FleetNode& node, const FleetGpu& gpu) {
  return node.can_share && gpu.takes_share() && gpu.left_mib > 0 &&
         gpu.containers + 1 < gpu.client_slots;
}

void move_key(OrderedKeys& keys, std::uint64_t from, Room room_before, std::uint64_t to,
              Room room) {
  if (from == to) {
    if (to != 0 && room != room_before) keys.set_room(to, room);
    return;
  }
  if (from != 0) keys.erase(from);
  if (to != 0) keys.insert(to, room);
}

std::int64_t class_mib(const NodeImage& image) {
  std::int64_t mib = 0;
  for (const FleetGpu& gpu : image.gpus) mib = std::max<std::int64_t>(mib, gpu.total_mib);
  return mib;
}

}  // namespace

ClassId Fleet::class_of(const std::string& model, std::int64_t gpu_mib) {
  for (std::size_t id = 0; id < classes_.size(); ++id) {
    if (classes_[id].model == model && classes_[id].gpu_mib == gpu_mib) {
      return static_cast<ClassId>(id);
    }
  }
  if (classes_.size() == kNodeClasses) return static_cast<ClassId>(kNodeClasses - 1);
  classes_.push_back({model, gpu_mib});
  ++classes_version_;
  return static_cast<ClassId>(classes_.size() - 1);
}

std::uint16_t Fleet::partition_of(ClassId node_class, const std::string& attributes) {
  std::vector<IndexPartition>& partitions = index_.partitions;
  const auto find = [&](bool same_attributes) {
    return std::find_if(partitions.begin(), partitions.end(), [&](const IndexPartition& each) {
      return each.node_class == node_class && each.same_attributes == same_attributes &&
             (!same_attributes || each.attributes == attributes);
    });
  };
  auto found = find(true);
  const bool full = partitions.size() >= kIndexPartitions;
  if (found == partitions.end() && full) found = find(false);
  if (found == partitions.end()) {
    IndexPartition fresh;
    fresh.node_class = node_class;
    fresh.same_attributes = !full;
    fresh.attributes = full ? std::string() : attributes;
    found = partitions.insert(found, std::move(fresh));
  }
  return static_cast<std::uint16_t>(found - partitions.begin());
}

NodeSlot Fleet::add(const NodeImage& image) {
  const auto slot = static_cast<NodeSlot>(nodes_.size());
  COTENANT_ASSERT(slot < index_key::kSlotMask);
  nodes_.emplace_back();
  last_changes_.emplace_back();
  put(slot, image);
  return slot;
}

void Fleet::put(NodeSlot slot, const NodeImage& image) {
  COTENANT_ASSERT(slot < nodes_.size());
  COTENANT_ASSERT(image.gpus.size() <= base::limits::kGpusPerInstance);
  FleetNode& node = nodes_[slot];
  if (node.present) {
    NodeKeys before;
    list_keys(slot, before);
    reindex(index_.partitions[node.partition], before, NodeKeys{});
    classes_[node.node_class].gpus -= node.gpu_count;
    total_gpus_ -= node.gpu_count;
    total_cpu_ -= node.cpu_total;
  }
  // A node that comes back with more GPUs gets a new range; the old one stays unused.
  if (image.gpus.size() > node.gpu_count || !node.present) {
    node.gpu_begin = static_cast<std::uint32_t>(gpus_.size());
    gpus_.resize(gpus_.size() + image.gpus.size());
  }
  std::copy(image.gpus.begin(), image.gpus.end(), gpus_.begin() + node.gpu_begin);
  node.gpu_count = static_cast<std::uint8_t>(image.gpus.size());
  node.node_class = class_of(image.model, class_mib(image));
  const IndexPartition* const same = node.present ? &index_.partitions[node.partition] : nullptr;
  if (same == nullptr || !same->same_attributes || same->node_class != node.node_class ||
      same->attributes != image.attributes) {
    node.partition = partition_of(node.node_class, image.attributes);
  }
  node.cpu_free = image.cpu_free;
  node.cpu_total = image.cpu_total;
  node.memory_free_mib = image.memory_free_mib;
  node.memory_total_mib = image.memory_total_mib;
  node.present = true;
  node.active = image.active;
  node.connected = image.connected;
  node.can_share = image.can_share;
  node.placeable = image.active && image.connected;
  NodeClass& its_class = classes_[node.node_class];
  its_class.gpus += node.gpu_count;
  if (node.gpu_count > its_class.gpus_per_node) {
    its_class.gpus_per_node = node.gpu_count;
    ++classes_version_;
  }
  total_gpus_ += node.gpu_count;
  total_cpu_ += node.cpu_total;
  for (std::size_t i = 0; i < node.gpu_count; ++i) gpus_[node.gpu_begin + i].derive_milli();
  settle(slot, NodeKeys{});
}

void Fleet::remove(NodeSlot slot) {
  FleetNode& node = nodes_[slot];
  COTENANT_ASSERT(node.present);
  NodeKeys before;
  list_keys(slot, before);
  reindex(index_.partitions[node.partition], before, NodeKeys{});
  classes_[node.node_class].gpus -= node.gpu_count;
  total_gpus_ -= node.gpu_count;
  total_cpu_ -= node.cpu_total;
  node = {};
  log_change(slot);
}

void Fleet::list_keys(NodeSlot slot, NodeKeys& keys) const {
  const FleetNode& node = nodes_[slot];
  if (!node.placeable) return;
  if (node.whole_gpus > 0) keys.whole = index_key::node(node.whole_gpus, slot);
  keys.usable = index_key::node(node.usable_mib + 1, slot);
  keys.room = room_of(node.cpu_free, node.memory_free_mib);
  for (const FleetGpu *gpu = gpus(slot), *end = gpu + node.gpu_count; gpu != end; ++gpu) {
    if (!is_indexed(node, *gpu)) continue;
    const std::uint64_t key = index_key::share(gpu->left_mib, gpu->is_idle(), slot);
    std::size_t at = keys.shares;
    while (at > 0 && keys.share[at - 1] > key) --at;
    if (at > 0 && keys.share[at - 1] == key) continue;
    std::copy_backward(keys.share.begin() + at, keys.share.begin() + keys.shares,
                       keys.share.begin() + keys.shares + 1);
    keys.share[at] = key;
    ++keys.shares;
  }
}

void Fleet::reindex(IndexPartition& index, const NodeKeys& before, const NodeKeys& now) {
  move_key(index.wholes, before.whole, before.room, now.whole, now.room);
  move_key(index.usable, before.usable, before.room, now.usable, now.room);
  std::size_t old_at = 0;
  std::size_t at = 0;
  while (old_at < before.shares || at < now.shares) {
    if (at == now.shares || (old_at < before.shares && before.share[old_at] < now.share[at])) {
      index.shares.erase(before.share[old_at++]);
    } else if (old_at == before.shares || now.share[at] < before.share[old_at]) {
      index.shares.insert(now.share[at++], now.room);
    } else {
      if (now.room != before.room) index.shares.set_room(now.share[at], now.room);
      ++old_at;
      ++at;
    }
  }
}

// The node's sums and its keys, after it or its GPUs have changed.
void Fleet::settle(NodeSlot slot, const NodeKeys& before) {
  FleetNode& node = nodes_[slot];
  node.whole_gpus = 0;
  node.usable_mib = 0;
  for (const FleetGpu *gpu = gpus(slot), *end = gpu + node.gpu_count; gpu != end; ++gpu) {
    node.whole_gpus = static_cast<std::uint8_t>(node.whole_gpus + (gpu->takes_whole() ? 1 : 0));
    node.usable_mib += gpu->usable_mib();
  }
  NodeKeys now;
  list_keys(slot, now);
  reindex(index_.partitions[node.partition], before, now);
  log_change(slot);
}

void Fleet::change(NodeSlot slot, GpuSet gpus, const TaskNeed& need, int sign) {
  FleetNode& node = nodes_[slot];
  NodeKeys before;
  list_keys(slot, before);
  node.cpu_free -= sign * need.cpu_units;
  node.memory_free_mib -= sign * need.memory_mib;
  COTENANT_ASSERT(node.cpu_free <= node.cpu_total && node.memory_free_mib <= node.memory_total_mib);
  gpus.for_each([&](std::size_t i) {
    COTENANT_ASSERT(i < node.gpu_count);
    FleetGpu& gpu = gpus_[node.gpu_begin + i];
    if (need.gpu.is_shared()) {
      gpu.left_mib -= static_cast<std::int32_t>(sign * need.gpu.shared_memory_mib);
      gpu.containers =
          static_cast<std::int16_t>(gpu.containers + sign * need.gpu.shared_containers);
      COTENANT_ASSERT(!gpu.dedicated && gpu.left_mib >= 0 && gpu.left_mib <= gpu.total_mib);
      COTENANT_ASSERT(gpu.containers >= 0 && gpu.containers < gpu.client_slots);
    } else {
      COTENANT_ASSERT(sign > 0 ? gpu.is_idle() : gpu.dedicated);
      gpu.dedicated = sign > 0;
    }
    gpu.derive_milli();
  });
  settle(slot, before);
}

void Fleet::set_gpu_health(NodeSlot slot, std::size_t gpu, bool healthy) {
  FleetNode& node = nodes_[slot];
  COTENANT_ASSERT(gpu < node.gpu_count);
  NodeKeys before;
  list_keys(slot, before);
  FleetGpu& held = gpus_[node.gpu_begin + gpu];
  held.healthy = healthy;
  held.derive_milli();
  settle(slot, before);
}

void Fleet::log_change(NodeSlot slot) {
  // Whoever has missed as many changes as there are nodes looks at all nodes anew.
  if (changes_.size() >= 2 * nodes_.size() + 4096) {
    const std::size_t dropped = changes_.size() / 2;
    changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(dropped));
    changes_begin_ += dropped;
  }
  last_changes_[slot] = changes_end();
  changes_.push_back(slot);
}

int Fleet::whole_count(NodeSlot slot, const TaskGpuNeed& need) const {
  const FleetNode& node = nodes_[slot];
  const int wanted = need.whole_all ? node.gpu_count : need.whole_count;
  return wanted <= node.whole_gpus ? wanted : 0;
}

bool Fleet::gpus_fit(NodeSlot slot, const TaskGpuNeed& need) const {
  if (need.is_none()) return true;
  if (need.is_whole()) return whole_count(slot, need) > 0;
  for (const FleetGpu *gpu = gpus(slot), *end = gpu + nodes_[slot].gpu_count; gpu != end; ++gpu) {
    if (gpu_fits_share(*gpu, need)) return true;
  }
  return false;
}

GpuSet Fleet::lowest_idle(NodeSlot slot, const TaskGpuNeed& need) const {
  GpuSet set;
  int wanted = whole_count(slot, need);
  for (std::size_t i = 0; wanted > 0; ++i) {
    COTENANT_ASSERT(i < nodes_[slot].gpu_count);
    if (!gpu(slot, i).takes_whole()) continue;
    set.insert(i);
    --wanted;
  }
  return set;
}

std::size_t Fleet::bytes() const {
  std::size_t bytes = nodes_.capacity() * sizeof(FleetNode) + gpus_.capacity() * sizeof(FleetGpu) +
                      changes_.capacity() * sizeof(NodeSlot) +
                      last_changes_.capacity() * sizeof(std::uint64_t);
  for (const IndexPartition& each : index_.partitions) {
    bytes +=
        sizeof(IndexPartition) + each.shares.bytes() + each.wholes.bytes() + each.usable.bytes();
  }
  return bytes;
}

}  // namespace cotenant::core
