// How much of a node's GPU memory the requests of a workload could not use: for each shape all of it
// where model, CPU or the number of GPUs do not do, else what lies on GPUs too small for it; weighted.
// The measure of the published policy FGD (USENIX ATC '23), in a form that is a sum over the GPUs:
//   waste = weight * L - sum_i l_i * (weight of the share shapes that GPU i can serve)
//                      - 1000 * idle * (weight of the whole-GPU shapes that the node can serve)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/placement/training_shapes.h"

namespace cotenant::core {

class WasteTable {
 public:
  // What applies to a node of one class with so much CPU left.
  struct Row {
    const std::uint16_t* group = nullptr;  // by milli left: how many sizes fit
    const std::int64_t* served = nullptr;  // by that number: weight of the share shapes served
    const std::int64_t* whole = nullptr;   // by idle GPUs: weight of the whole-GPU shapes served
  };

  // Before this nothing is wasted. weights[i] belongs to shapes[i]; shapes without GPU count as ones
  // that can use nothing, with `count_cpu_only`, else not at all.
  void build(std::size_t classes, const std::vector<TrainingShape>& shapes,
             const std::vector<std::int64_t>& weights, bool count_cpu_only);
  bool empty() const { return classes_.empty(); }
  std::int64_t weight() const { return weight_; }

  Row row(ClassId id, std::int64_t cpu_milli) const;

 private:
  static constexpr std::size_t kIdleCounts = base::limits::kGpusPerInstance + 1;
  struct Class {
    std::vector<std::int64_t> cpu_steps;    // sorted, distinct: CPU of the shapes
    std::vector<std::uint16_t> core_steps;  // by CPU / 1024: how many steps are below that
    std::size_t step_of(std::int64_t cpu_milli) const;
    std::array<std::uint16_t, 1001> group{};
    std::size_t groups = 0;
    std::vector<std::int64_t> served;  // (cpu_steps + 1) x (groups + 1)
    std::vector<std::int64_t> whole;   // (cpu_steps + 1) x kIdleCounts
  };
  static void index_steps(Class& of);
  static Class build_class(std::size_t id, const std::vector<TrainingShape>& shapes,
                           const std::vector<std::int64_t>& weights);

  std::vector<Class> classes_;
  std::int64_t weight_ = 0;
};

}  // namespace cotenant::core
