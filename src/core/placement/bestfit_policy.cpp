#include "core/placement/bestfit_policy.h"

#include "core/placement/tight_policy.h"
#include "core/placement/value_policy.h"

namespace cotenant::core {
namespace {

constexpr std::int64_t kLargeNodeCpuMilli = 128000;
constexpr std::int64_t kLargeNodeGpuMilli = 8000;

struct LeftAfter {
  std::int64_t cpu_milli = 0;
  std::int64_t gpu_milli = 0;
};

LeftAfter left_after(const Fleet& fleet, const PlacementChoice& choice, const TaskNeed& need) {
  LeftAfter left;
  left.cpu_milli = fleet.cpu_milli(fleet.node(choice.slot).cpu_free - need.cpu_units);
  for (std::size_t i = 0; i < fleet.node(choice.slot).gpu_count; ++i) {
    const FleetGpu& gpu = fleet.gpu(choice.slot, i);
    left.gpu_milli += !choice.gpus.contains(i) ? gpu.left_milli
                      : need.gpu.is_shared()   ? milli_after_share(gpu, need.gpu)
                                               : 0;
  }
  return left;
}

}  // namespace

NodeScore BestFitPolicy::score_node(const Fleet& fleet, NodeSlot slot, const NodeDigest& digest,
                                    const GpuKind*, const TaskNeed& need) const {
  NodeScore score;
  if (!digest.may_fit(need) || !fleet.gpus_fit(slot, need.gpu)) return score;
  const PlacementChoice choice{slot, tight_gpus(fleet, slot, need.gpu)};
  if (need.gpu.is_shared()) score.gpu = static_cast<std::uint8_t>(choice.gpus.lowest());
  const LeftAfter left = left_after(fleet, choice, need);
  // In the order of the published formula: the bands' edges depend on its rounding.
  const double part = static_cast<double>(left.cpu_milli) / kLargeNodeCpuMilli * 0.5 +
                      static_cast<double>(left.gpu_milli) / kLargeNodeGpuMilli * 0.5;
  score.cost = -static_cast<std::int32_t>((1 - part) * 100);
  return score;
}

std::vector<PolicyTerm> BestFitPolicy::terms(const Fleet& fleet, const PlacementChoice& choice,
                                             const TaskNeed& need) const {
  const LeftAfter left = left_after(fleet, choice, need);
  return {{"CPU left", left.cpu_milli, "milli-CPU"}, {"GPU left", left.gpu_milli, kGpuMilliUnit}};
}

}  // namespace cotenant::core
