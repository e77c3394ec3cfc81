#include "core/placement/placement.h"

#include <algorithm>

#include "base/assert.h"
#include "core/placement/fleet_mirror.h"
#include "core/placement/placement_detail.h"
#include "core/placement/port_placement.h"
#include "core/placement/tight_policy.h"

namespace cotenant::core {

PlacementRefusal refuse(const Fleet& fleet, const std::vector<const Instance*>& instances,
                        const PlacementQuery& query) {
  std::vector<FailedInstance> failed;
  bool infeasible = true;
  for (const Instance* instance : instances) {
    const NodeSlot slot = *instance->fleet_slot;
    const auto test = failed_test(fleet, slot, query);
    COTENANT_ASSERT(test.has_value());
    failed.push_back({instance, *test});
    if (infeasible && fits_when_empty(fleet, slot, query)) infeasible = false;
  }
  return explain_refusal(failed, query.need, infeasible);
}

tl::expected<Placement, PlacementRefusal> place(const std::vector<const Instance*>& instances,
                                                const TaskNeed& need) {
  COTENANT_ASSERT(!(need.gpu.is_shared() && need.gpu.is_whole()));
  std::vector<Instance> copies;
  for (const Instance* instance : instances) copies.push_back(*instance);
  std::stable_sort(copies.begin(), copies.end(),
                   [](const Instance& a, const Instance& b) { return a.number < b.number; });
  Fleet fleet;
  for (Instance& instance : copies) instance.fleet_slot = fleet.add(image_of(instance));

  PlacementQuery query;
  query.need = need;
  std::vector<const Instance*> mirrored;
  for (const Instance& copy : copies) mirrored.push_back(&copy);
  demand_ports(mirrored, query);
  if (const auto choice = choose_tight(fleet, query)) {
    return Placement{copies[choice->slot].registration.id, choice->gpus.list()};
  }
  // In the order given: the first of several that are equally near is named.
  std::vector<const Instance*> given;
  for (const Instance* instance : instances) {
    const auto same = std::find_if(copies.begin(), copies.end(), [&](const Instance& copy) {
      return copy.registration.id == instance->registration.id;
    });
    given.push_back(&*same);
  }
  return tl::unexpected<PlacementRefusal>(refuse(fleet, given, query));
}

}  // namespace cotenant::core
