// The index of a Fleet: GPUs by MiB left, nodes by whole GPUs to give, nodes by GPU memory left in
// all; each per node class, each ordered so that a walk upward meets the best candidate first and
// ties in the order of registration.
#pragma once

#include <cstdint>
#include <vector>

#include "core/fleet_node.h"
#include "core/ordered_keys.h"

namespace cotenant::core {

// Keys: what is ranked by in the high bits, then what decides ties. None is 0.
namespace index_key {

inline constexpr int kGpuBits = 6;
inline constexpr int kSlotBits = 24;
inline constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;

// MiB left, then GPUs in NVIDIA_MPS mode before idle ones, then the slot, then the GPU.
inline std::uint64_t share(std::int64_t left_mib, bool idle, NodeSlot slot, std::size_t gpu) {
  return (static_cast<std::uint64_t>(left_mib) << (kSlotBits + kGpuBits + 1)) |
         (std::uint64_t{idle} << (kSlotBits + kGpuBits)) | (std::uint64_t{slot} << kGpuBits) | gpu;
}
inline NodeSlot share_slot(std::uint64_t key) {
  return static_cast<NodeSlot>((key >> kGpuBits) & kSlotMask);
}
inline std::size_t share_gpu(std::uint64_t key) {
  return key & ((std::uint64_t{1} << kGpuBits) - 1);
}
// A count (at least 1) or MiB plus 1, then the slot.
inline std::uint64_t node(std::int64_t rank, NodeSlot slot) {
  return (static_cast<std::uint64_t>(rank) << kSlotBits) | slot;
}
inline NodeSlot node_slot(std::uint64_t key) {
  return static_cast<NodeSlot>(key & kSlotMask);
}

}  // namespace index_key

struct ClassIndex {
  OrderedKeys shares;  // GPUs that may take a share: index_key::share
  OrderedKeys wholes;  // nodes with a GPU for whole-GPU work: index_key::node(count)
  OrderedKeys usable;  // every node that takes work: index_key::node(MiB + 1)
};

struct FleetIndex {
  std::vector<ClassIndex> classes;  // by ClassId
};

}  // namespace cotenant::core
