// A node as the scoring policies see it: GPUs that no need can tell apart stand once, with their
// number. A node of eight GPUs has two or three kinds of them, so that a score costs two or three
// steps, and most needs are seen not to fit at a glance.
//
// DigestTable keeps the digests of a fleet's nodes and makes anew what has changed. A pure cache.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/placement/fleet.h"

namespace cotenant::core {

struct GpuKind {
  std::int32_t left_mib = 0;
  std::int32_t total_mib = 0;
  std::int16_t milli = 0;         // left, of 1000
  std::int16_t free_clients = 0;  // containers that it still takes; 10 are as good as more
  std::uint8_t count = 0;
  std::uint8_t lowest = 0;  // index of the first one
  bool takes_share = false;
  bool takes_whole = false;

  bool fits_share(const TaskGpuNeed& need) const {
    return takes_share && left_mib >= need.shared_memory_mib &&
           need.shared_containers <= free_clients;
  }
};

// Its kinds are in the order of their first GPUs.
struct NodeDigest {
  std::int64_t cpu_free = -1;       // -1: it takes no work
  std::int64_t value = 0;           // what the policy finds the node worth as it is
  std::int32_t most_left_mib = -1;  // of the GPUs that take shares; -1: there is none
  ClassId node_class = 0;
  std::uint8_t kinds = 0;
  std::uint8_t gpu_count = 0;
  std::uint8_t whole_gpus = 0;

  // 0: it cannot give them.
  int whole_count(const TaskGpuNeed& need) const {
    const int wanted = need.whole_all ? gpu_count : need.whole_count;
    return wanted <= whole_gpus ? wanted : 0;
  }
  // False: it does not fit. True: it may.
  bool may_fit(const TaskNeed& need) const {
    if (cpu_free < need.cpu_units) return false;
    if (need.gpu.is_shared()) return most_left_mib >= need.gpu.shared_memory_mib;
    return !need.gpu.is_whole() || whole_count(need.gpu) > 0;
  }
};

// `kinds` has room for as many as the node has GPUs.
NodeDigest digest_of(const Fleet& fleet, NodeSlot slot, GpuKind* kinds);

class DigestTable {
 public:
  struct Entry {
    std::uint64_t change = 0;       // of the node, that the digest is of
    std::uint64_t value_epoch = 0;  // of the policy, that digest.value is of; 0: of none
    NodeDigest digest;
    std::array<GpuKind, 4> few{};
    std::vector<GpuKind> many;  // in place of `few`, where there are more
    const GpuKind* kinds() const { return many.empty() ? few.data() : many.data(); }
  };

  // The node's digest as of now. Its value is the caller's to renew.
  Entry& at(const Fleet& fleet, NodeSlot slot) {
    Entry& entry = entry_of(slot);
    if (entry.change != fleet.last_change(slot)) renew(fleet, slot, entry);
    return entry;
  }
  std::size_t bytes() const;

 private:
  // In parts, so that a decision in a large fleet pays for the nodes that it looks at.
  static constexpr std::size_t kPart = 512;
  Entry& entry_of(NodeSlot slot) {
    const std::size_t part = slot / kPart;
    if (part >= parts_.size()) parts_.resize(part + 1);
    if (parts_[part].empty()) parts_[part].resize(kPart);
    return parts_[part][slot % kPart];
  }
  static void renew(const Fleet& fleet, NodeSlot slot, Entry& entry);

  std::vector<std::vector<Entry>> parts_;
};

}  // namespace cotenant::core
