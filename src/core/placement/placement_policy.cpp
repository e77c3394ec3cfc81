#include "core/placement/placement_policy.h"

#include <algorithm>
#include <array>

#include "core/placement/balanced_policy.h"
#include "core/placement/bestfit_policy.h"
#include "core/placement/curve_policy.h"
#include "core/placement/fgd_policy.h"

namespace cotenant::core {

const std::vector<std::string_view>& placement_policy_names() {
  static const std::vector<std::string_view> names = {"balanced", "bestfit", "fgd", "tc",
                                                      "tcb",      "tight",   "wv"};
  return names;
}

bool is_placement_policy(std::string_view name) {
  const std::vector<std::string_view>& names = placement_policy_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

NodeScore PlacementPolicy::score(const Fleet& fleet, NodeSlot slot, const TaskNeed& need) const {
  std::array<GpuKind, base::limits::kGpusPerInstance> kinds;
  NodeDigest digest = digest_of(fleet, slot, kinds.data());
  digest.value = value(fleet, digest, kinds.data());
  return score_node(fleet, slot, digest, kinds.data(), need);
}

std::unique_ptr<PlacementPolicy> make_placement_policy(std::string_view name) {
  if (name == "balanced") return std::make_unique<BalancedPolicy>();
  if (name == "bestfit") return std::make_unique<BestFitPolicy>();
  if (name == "fgd") return std::make_unique<FgdPolicy>();
  if (name == "tc") return std::make_unique<CurvePolicy>(CurvePolicy::Kind::kTc);
  if (name == "tcb") return std::make_unique<CurvePolicy>(CurvePolicy::Kind::kTcb);
  if (name == "wv") return std::make_unique<CurvePolicy>(CurvePolicy::Kind::kWv);
  return nullptr;
}

}  // namespace cotenant::core
