#include "core/fleet.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace cotenant::core {
namespace {

// 0 where the GPU takes no share.
std::uint64_t share_key(const FleetNode& node, const FleetGpu& gpu, NodeSlot slot,
                        std::size_t index) {
  const bool takes = node.placeable && node.can_share && gpu.takes_share() && gpu.left_mib > 0 &&
                     gpu.containers + 1 < gpu.client_slots;
  return takes ? index_key::share(gpu.left_mib, gpu.is_idle(), slot, index) : 0;
}

void move_key(OrderedKeys& keys, std::uint64_t from, std::uint64_t to) {
  if (from == to) return;
  if (from != 0) keys.erase(from);
  if (to != 0) keys.insert(to);
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
  index_.classes.emplace_back();
  return static_cast<ClassId>(classes_.size() - 1);
}

NodeSlot Fleet::add(const NodeImage& image) {
  const auto slot = static_cast<NodeSlot>(nodes_.size());
  COTENANT_ASSERT(slot < index_key::kSlotMask);
  nodes_.emplace_back();
  put(slot, image);
  return slot;
}

void Fleet::put(NodeSlot slot, const NodeImage& image) {
  COTENANT_ASSERT(slot < nodes_.size());
  COTENANT_ASSERT(image.gpus.size() <= base::limits::kGpusPerInstance);
  unindex(slot);
  FleetNode& node = nodes_[slot];
  if (node.present) {
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
  its_class.gpus_per_node = std::max(its_class.gpus_per_node, int{node.gpu_count});
  total_gpus_ += node.gpu_count;
  total_cpu_ += node.cpu_total;
  for (std::size_t i = 0; i < node.gpu_count; ++i) {
    FleetGpu& gpu = gpus_[node.gpu_begin + i];
    gpu.derive_milli();
    if (const std::uint64_t key = share_key(node, gpu, slot, i)) {
      index_.classes[node.node_class].shares.insert(key);
    }
  }
  settle(slot);
}

void Fleet::remove(NodeSlot slot) {
  FleetNode& node = nodes_[slot];
  COTENANT_ASSERT(node.present);
  unindex(slot);
  classes_[node.node_class].gpus -= node.gpu_count;
  total_gpus_ -= node.gpu_count;
  total_cpu_ -= node.cpu_total;
  node = {};
  log_change(slot);
}

// Takes the node and its GPUs out of the index.
void Fleet::unindex(NodeSlot slot) {
  FleetNode& node = nodes_[slot];
  if (!node.present) return;
  ClassIndex& index = index_.classes[node.node_class];
  for (std::size_t i = 0; i < node.gpu_count; ++i) {
    move_key(index.shares, share_key(node, gpus_[node.gpu_begin + i], slot, i), 0);
  }
  move_key(index.wholes, node.whole_key, 0);
  move_key(index.usable, node.usable_key, 0);
  node.whole_key = 0;
  node.usable_key = 0;
}

// The node's sums and its own keys, after its GPUs have changed.
void Fleet::settle(NodeSlot slot) {
  FleetNode& node = nodes_[slot];
  node.whole_gpus = 0;
  node.usable_mib = 0;
  for (const FleetGpu *gpu = gpus(slot), *end = gpu + node.gpu_count; gpu != end; ++gpu) {
    node.whole_gpus = static_cast<std::uint8_t>(node.whole_gpus + (gpu->takes_whole() ? 1 : 0));
    node.usable_mib += gpu->usable_mib();
  }
  ClassIndex& index = index_.classes[node.node_class];
  const std::uint64_t whole_key =
      node.placeable && node.whole_gpus > 0 ? index_key::node(node.whole_gpus, slot) : 0;
  const std::uint64_t usable_key = node.placeable ? index_key::node(node.usable_mib + 1, slot) : 0;
  move_key(index.wholes, node.whole_key, whole_key);
  move_key(index.usable, node.usable_key, usable_key);
  node.whole_key = whole_key;
  node.usable_key = usable_key;
  log_change(slot);
}

void Fleet::change(NodeSlot slot, GpuSet gpus, const TaskNeed& need, int sign) {
  FleetNode& node = nodes_[slot];
  node.cpu_free -= sign * need.cpu_units;
  node.memory_free_mib -= sign * need.memory_mib;
  COTENANT_ASSERT(node.cpu_free <= node.cpu_total && node.memory_free_mib <= node.memory_total_mib);
  if (gpus.empty()) {
    log_change(slot);
    return;
  }
  OrderedKeys& shares = index_.classes[node.node_class].shares;
  gpus.for_each([&](std::size_t i) {
    COTENANT_ASSERT(i < node.gpu_count);
    FleetGpu& gpu = gpus_[node.gpu_begin + i];
    const std::uint64_t before = share_key(node, gpu, slot, i);
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
    move_key(shares, before, share_key(node, gpu, slot, i));
  });
  settle(slot);
}

void Fleet::set_gpu_health(NodeSlot slot, std::size_t gpu, bool healthy) {
  FleetNode& node = nodes_[slot];
  COTENANT_ASSERT(gpu < node.gpu_count);
  FleetGpu& held = gpus_[node.gpu_begin + gpu];
  const std::uint64_t before = share_key(node, held, slot, gpu);
  held.healthy = healthy;
  held.derive_milli();
  move_key(index_.classes[node.node_class].shares, before, share_key(node, held, slot, gpu));
  settle(slot);
}

void Fleet::log_change(NodeSlot slot) {
  // Whoever has missed as many changes as there are nodes looks at all nodes anew.
  if (changes_.size() >= 2 * nodes_.size() + 4096) {
    const std::size_t dropped = changes_.size() / 2;
    changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(dropped));
    changes_begin_ += dropped;
  }
  nodes_[slot].last_change = changes_end();
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
                      changes_.capacity() * sizeof(NodeSlot);
  for (const ClassIndex& each : index_.classes) {
    bytes += each.shares.bytes() + each.wholes.bytes() + each.usable.bytes();
  }
  return bytes;
}

}  // namespace cotenant::core
