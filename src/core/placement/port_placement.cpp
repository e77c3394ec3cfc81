#include "core/placement/port_placement.h"

#include <map>
#include <utility>

namespace cotenant::core {

void demand_ports(const std::vector<const Instance*>& instances, PlacementQuery& query) {
  if (query.need.ports.empty()) return;
  std::map<NodeSlot, const Instance*> by_slot;
  for (const Instance* instance : instances) by_slot[*instance->fleet_slot] = instance;
  query.gives_ports = [by_slot = std::move(by_slot), ports = query.need.ports](NodeSlot slot,
                                                                               bool when_empty) {
    const auto found = by_slot.find(slot);
    return found == by_slot.end() || !port_in_the_way(*found->second, ports, when_empty);
  };
}

}  // namespace cotenant::core
