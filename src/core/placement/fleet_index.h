// The index of a Fleet: GPUs by MiB left, nodes by whole GPUs to give, nodes by GPU memory left in
// all; each per partition (node class and attributes), each ordered so that a walk upward meets the best candidate first and
// ties in the order of registration, and steps over nodes without the CPU or memory asked for.
// GPUs of one node that are equal in what ranks them share a key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/placement/fleet_node.h"
#include "core/placement/ordered_keys.h"

namespace cotenant::core {

// Keys: what is ranked by in the high bits, then what decides ties. None is 0.
namespace index_key {

inline constexpr int kSlotBits = 24;
inline constexpr std::uint64_t kSlotMask = (std::uint64_t{1} << kSlotBits) - 1;

// MiB left, then GPUs in NVIDIA_MPS mode before idle ones, then the slot.
inline std::uint64_t share(std::int64_t left_mib, bool idle, NodeSlot slot) {
  return (static_cast<std::uint64_t>(left_mib) << (kSlotBits + 1)) |
         (std::uint64_t{idle} << kSlotBits) | slot;
}
inline std::int64_t share_left_mib(std::uint64_t key) {
  return static_cast<std::int64_t>(key >> (kSlotBits + 1));
}
inline bool share_is_idle(std::uint64_t key) {
  return (key >> kSlotBits & 1) != 0;
}
// A count (at least 1) or MiB plus 1, then the slot.
inline std::uint64_t node(std::int64_t rank, NodeSlot slot) {
  return (static_cast<std::uint64_t>(rank) << kSlotBits) | slot;
}
inline NodeSlot slot_of(std::uint64_t key) {
  return static_cast<NodeSlot>(key & kSlotMask);
}

}  // namespace index_key

struct IndexPartition {
  ClassId node_class = 0;
  // All its nodes have these; or, where there are more sets of attributes than partitions, one partition
  // of each class takes the nodes of all the others.
  bool same_attributes = true;
  std::string attributes;

  OrderedKeys shares;  // GPUs that may take a share: index_key::share
  OrderedKeys wholes;  // nodes with a GPU for whole-GPU work: index_key::node(count)
  OrderedKeys usable;  // every node that takes work: index_key::node(MiB + 1)
};

// Each costs a look-up a decision.
inline constexpr std::size_t kIndexPartitions = 48;

struct FleetIndex {
  std::vector<IndexPartition> partitions;
};

}  // namespace cotenant::core
