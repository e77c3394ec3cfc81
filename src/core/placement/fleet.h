// What placement knows of a cluster's instances: plain numbers, and the index over them.
//
// One engine for live placement, dry run, explain and replay: live, each instance of the cluster is
// mirrored by a node (core/state.h keeps it so); a replay has nodes only. Nodes stand in the order of
// registration, which decides ties. take() and give_back() are each other's exact inverse, so that
// what-if is: take, ask, give back (core/placement/what_if.h).
//
// A value type, pure, not thread safe. MiB and CPU are integers in the caller's unit; policies see
// milli-CPU and per-mille of a GPU's memory (what is left is rounded down).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/gpu_set.h"
#include "core/placement/fleet_index.h"
#include "core/placement/fleet_node.h"
#include "core/task_definition.h"

namespace cotenant::core {

class Fleet {
 public:
  // CPU that makes one core: ECS counts 1024 units.
  explicit Fleet(std::int64_t cpu_per_core = 1024) : cpu_per_core_(cpu_per_core) {}

  // Appends a node after all others.
  NodeSlot add(const NodeImage& image);
  // Replaces what is known of a node: its load, its state, its GPUs.
  void put(NodeSlot slot, const NodeImage& image);
  // The node is gone; its slot stays empty for good.
  void remove(NodeSlot slot);

  // Reserves what the need says on the node; the caller has asked failed_test() or fits().
  void take(NodeSlot slot, GpuSet gpus, const TaskNeed& need) { change(slot, gpus, need, +1); }
  void give_back(NodeSlot slot, GpuSet gpus, const TaskNeed& need) { change(slot, gpus, need, -1); }
  // A GPU that is not healthy takes nothing; what it holds, it holds.
  void set_gpu_health(NodeSlot slot, std::size_t gpu, bool healthy);

  std::size_t size() const { return nodes_.size(); }  // slots, empty ones included
  const FleetNode& node(NodeSlot slot) const { return nodes_[slot]; }
  const FleetGpu& gpu(NodeSlot slot, std::size_t gpu) const {
    return gpus_[nodes_[slot].gpu_begin + gpu];
  }
  const FleetGpu* gpus(NodeSlot slot) const { return gpus_.data() + nodes_[slot].gpu_begin; }

  // CPU and memory are there and the node takes work.
  bool has_room(NodeSlot slot, const TaskNeed& need) const {
    const FleetNode& node = nodes_[slot];
    return node.placeable && node.cpu_free >= need.cpu_units &&
           node.memory_free_mib >= need.memory_mib;
  }
  static bool gpu_fits_share(const FleetGpu& gpu, const TaskGpuNeed& need) {
    return gpu.takes_share() && gpu.left_mib >= need.shared_memory_mib &&
           gpu.containers + need.shared_containers < gpu.client_slots;
  }
  // The whole GPUs that the need takes on this node; 0: it cannot.
  int whole_count(NodeSlot slot, const TaskGpuNeed& need) const;
  bool gpus_fit(NodeSlot slot, const TaskGpuNeed& need) const;
  // The lowest idle GPUs, as many as the need takes.
  GpuSet lowest_idle(NodeSlot slot, const TaskGpuNeed& need) const;

  const FleetIndex& index() const { return index_; }
  const std::vector<NodeClass>& classes() const { return classes_; }
  // Changes with what policies build their tables for: a class that is new, or has a larger node.
  std::uint32_t classes_version() const { return classes_version_; }
  // Finds or makes the class; a replay makes them in its own order.
  ClassId class_of(const std::string& model, std::int64_t gpu_mib);

  std::int64_t cpu_milli(std::int64_t cpu) const {
    return cpu_per_core_ == 1000 ? cpu : cpu * 1000 / cpu_per_core_;
  }
  std::int64_t need_cpu_milli(std::int64_t cpu) const {
    return (cpu * 1000 + cpu_per_core_ - 1) / cpu_per_core_;
  }
  std::int64_t total_cpu_milli() const { return cpu_milli(total_cpu_); }
  std::int64_t total_gpus() const { return total_gpus_; }

  // The nodes that changed, in order; for caches over nodes. The newest entry of a node counts.
  std::uint64_t changes_end() const { return changes_begin_ + changes_.size(); }
  std::uint64_t changes_begin() const { return changes_begin_; }
  NodeSlot change_at(std::uint64_t position) const { return changes_[position - changes_begin_]; }
  bool is_last_change(std::uint64_t position) const {
    return last_change(change_at(position)) == position;
  }
  std::uint64_t last_change(NodeSlot slot) const { return last_changes_[slot]; }

  std::size_t bytes() const;  // of memory held

 private:
  void change(NodeSlot slot, GpuSet gpus, const TaskNeed& need, int sign);
  // The node's keys in the index as it is now.
  struct NodeKeys {
    std::uint64_t whole = 0;  // 0: none
    std::uint64_t usable = 0;
    Room room;
    std::size_t shares = 0;  // the first of these, sorted
    std::array<std::uint64_t, base::limits::kGpusPerInstance> share;
  };
  void list_keys(NodeSlot slot, NodeKeys& keys) const;
  void reindex(IndexPartition& index, const NodeKeys& before, const NodeKeys& now);
  std::uint16_t partition_of(ClassId node_class, const std::string& attributes);
  void settle(NodeSlot slot, const NodeKeys& before);
  void log_change(NodeSlot slot);

  std::int64_t cpu_per_core_;
  std::vector<FleetNode> nodes_;
  std::vector<std::uint64_t> last_changes_;  // by slot
  std::vector<FleetGpu> gpus_;
  std::vector<NodeClass> classes_;
  std::uint32_t classes_version_ = 0;
  FleetIndex index_;
  std::vector<NodeSlot> changes_;
  std::uint64_t changes_begin_ = 1;
  std::int64_t total_cpu_ = 0;
  std::int64_t total_gpus_ = 0;
};

}  // namespace cotenant::core
