// The ports of a need as a demand on nodes: what the instances behind the nodes have reserved, and what
// their tasks hold.
#pragma once

#include <vector>

#include "core/instance.h"
#include "core/placement/placement_query.h"

namespace cotenant::core {

// Sets query.gives_ports where the need names ports. The instances, with their nodes' slots, must outlive
// the query.
void demand_ports(const std::vector<const Instance*>& instances, PlacementQuery& query);

}  // namespace cotenant::core
