// ECS's placement strategies: rank and select, in the order of the request.
// Source: ECS developer guide, "Amazon ECS task placement strategies": binpack takes the instances with
// the least of the field left, spread those whose value of the field has the fewest of the group's
// tasks, random any one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/prng.h"
#include "core/placement/placement_query.h"

namespace cotenant::core {

enum class PackField { kCpu, kMemory, kGpuMemory };

// One stage keeps, of the nodes that the stages before it have left, those with the least rank.
class RankStage {
 public:
  // gpuMemory: for a share the MiB left on the GPU that it would get, one in NVIDIA_MPS mode before an
  // idle one; for whole GPUs the number of idle ones; else the GPU memory left on the node.
  static RankStage binpack(PackField field);
  // `tasks_of_value` gives the number of the group's tasks on the nodes that have the same value of the
  // field as this one. Nodes without a value: what ECS says of them is the caller's to decide.
  static RankStage spread(std::function<std::int64_t(NodeSlot)> tasks_of_value);
  static RankStage random();
  bool packs_gpu_memory() const {
    return kind_ == Kind::kBinpack && field_ == PackField::kGpuMemory;
  }

  void keep_best(const Fleet& fleet, const TaskNeed& need, base::Prng& prng,
                 std::vector<NodeSlot>& nodes) const;

  // What keep_best() compares, of a node that fits. Nothing: a random stage looks at no node.
  std::optional<std::int64_t> rank_of(const Fleet& fleet, NodeSlot slot,
                                      const TaskNeed& need) const;

 private:
  enum class Kind { kBinpack, kSpread, kRandom };
  std::int64_t rank(const Fleet& fleet, NodeSlot slot, const TaskNeed& need) const;

  Kind kind_ = Kind::kRandom;
  PackField field_ = PackField::kCpu;
  std::function<std::int64_t(NodeSlot)> tasks_of_value_;
};

// How many nodes a stage was given, and how many it has kept.
struct StageTrace {
  std::size_t before = 0;
  std::size_t after = 0;
};

// Looks at every node, unless the one stage is the order of the index. Ties after the last stage go to
// the first node; in it, the tightest GPU that fits, or the lowest idle ones. `trace`, for explanations,
// gets an entry for each stage.
std::optional<PlacementChoice> choose_by_stages(const Fleet& fleet, const PlacementQuery& query,
                                                const std::vector<RankStage>& stages,
                                                base::Prng& prng,
                                                std::vector<StageTrace>* trace = nullptr);

}  // namespace cotenant::core
