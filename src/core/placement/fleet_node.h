// A node of the Fleet and its GPUs, as plain numbers. `NodeImage` is what callers hand over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cotenant::core {

using NodeSlot = std::uint32_t;
using ClassId = std::uint16_t;

struct FleetGpu {
  std::int32_t total_mib = 0;  // 0: its memory cannot be read, it takes whole-GPU work only
  std::int32_t left_mib = 0;
  std::int16_t containers = 0;
  std::int16_t client_slots = 0;  // one of them stays free for the probe
  std::int16_t left_milli = 0;    // per-mille left, as policies see it; derived
  bool dedicated = false;
  bool healthy = true;

  bool is_idle() const { return !dedicated && containers == 0; }
  bool takes_whole() const { return healthy && is_idle(); }
  bool takes_share() const { return healthy && !dedicated && total_mib > 0; }
  std::int64_t usable_mib() const { return healthy && !dedicated ? left_mib : 0; }
  void derive_milli() {
    left_milli = 0;
    if (takes_whole()) {
      left_milli = 1000;
    } else if (takes_share() && left_mib > 0) {
      left_milli = static_cast<std::int16_t>(std::int64_t{left_mib} * 1000 / total_mib);
    }
  }
};

// Nodes whose GPUs a request cannot tell apart: one model, one size. At most 256 of them; nodes of
// further kinds count as the last, which policies judge less well.
struct NodeClass {
  std::string model;
  std::int64_t gpu_mib = 0;
  std::int64_t gpus = 0;  // of all its nodes
  int gpus_per_node = 0;  // the most that one has had
  std::string name() const { return model + "/" + std::to_string(gpu_mib); }
};
inline constexpr std::size_t kNodeClasses = 256;

struct NodeImage {
  std::int64_t cpu_total = 0;
  std::int64_t cpu_free = 0;
  std::int64_t memory_total_mib = 0;
  std::int64_t memory_free_mib = 0;
  bool active = true;
  bool connected = true;
  bool can_share = true;  // has the attribute ecs.capability.gpu-sharing-mps
  std::string model;      // of its GPUs
  // What the node's attributes say, in one text: nodes with the same one cannot be told apart by them.
  std::string attributes;
  std::vector<FleetGpu> gpus;
};

struct FleetNode {
  std::int64_t cpu_free = 0;
  std::int64_t memory_free_mib = 0;
  std::uint32_t gpu_begin = 0;
  ClassId node_class = 0;
  std::uint16_t partition = 0;  // of the index
  std::uint8_t gpu_count = 0;
  std::uint8_t whole_gpus = 0;  // that take whole-GPU work now
  bool present = false;
  bool active = false;
  bool connected = false;
  bool can_share = false;
  bool placeable = false;       // present, active and connected: it is in the index
  std::int64_t usable_mib = 0;  // GPU memory left in all
  std::int64_t cpu_total = 0;
  std::int64_t memory_total_mib = 0;
};

}  // namespace cotenant::core
