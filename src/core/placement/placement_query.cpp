#include "core/placement/placement_query.h"

#include <algorithm>

namespace cotenant::core {
namespace {

bool has_attributes(const Fleet& fleet, NodeSlot slot, const PlacementQuery& query) {
  const FleetNode& node = fleet.node(slot);
  return (!query.need.gpu.is_shared() || node.can_share) && query.admits_class(node.node_class);
}

const PlacementConstraint* failed_constraint(NodeSlot slot, const PlacementQuery& query) {
  for (const PlacementConstraint& constraint : query.constraints) {
    if (!constraint.admits(slot)) return &constraint;
  }
  return nullptr;
}

bool gives_ports(NodeSlot slot, const PlacementQuery& query, bool when_empty) {
  return !query.gives_ports || query.gives_ports(slot, when_empty);
}

}  // namespace

std::string_view reason(PlacementTest test) {
  switch (test) {
    case PlacementTest::kAgent:
      return "AGENT";
    case PlacementTest::kAttribute:
      return "ATTRIBUTE";
    case PlacementTest::kConstraint:
      return "CONSTRAINT";
    case PlacementTest::kCpu:
      return "RESOURCE:CPU";
    case PlacementTest::kMemory:
      return "RESOURCE:MEMORY";
    case PlacementTest::kPorts:
      return "RESOURCE:PORTS";
    case PlacementTest::kGpu:
      return "RESOURCE:GPU";
  }
  return "";
}

std::optional<FailedTest> failed_test(const Fleet& fleet, NodeSlot slot,
                                      const PlacementQuery& query) {
  const FleetNode& node = fleet.node(slot);
  if (!node.placeable) return FailedTest{PlacementTest::kAgent};
  if (!has_attributes(fleet, slot, query)) return FailedTest{PlacementTest::kAttribute};
  if (const PlacementConstraint* constraint = failed_constraint(slot, query)) {
    return FailedTest{PlacementTest::kConstraint, constraint};
  }
  if (node.cpu_free < query.need.cpu_units) return FailedTest{PlacementTest::kCpu};
  if (node.memory_free_mib < query.need.memory_mib) return FailedTest{PlacementTest::kMemory};
  if (!gives_ports(slot, query, false)) return FailedTest{PlacementTest::kPorts};
  if (!fleet.gpus_fit(slot, query.need.gpu)) return FailedTest{PlacementTest::kGpu};
  return std::nullopt;
}

bool node_admits(const Fleet& fleet, NodeSlot slot, const PlacementQuery& query) {
  return fleet.has_room(slot, query.need) && has_attributes(fleet, slot, query) &&
         (query.constraints.empty() || failed_constraint(slot, query) == nullptr) &&
         gives_ports(slot, query, false);
}

bool fits_when_empty(const Fleet& fleet, NodeSlot slot, const PlacementQuery& query) {
  const FleetNode& node = fleet.node(slot);
  const TaskGpuNeed& need = query.need.gpu;
  if (!node.present || !node.active || !has_attributes(fleet, slot, query) ||
      failed_constraint(slot, query) != nullptr || node.cpu_total < query.need.cpu_units ||
      node.memory_total_mib < query.need.memory_mib || !gives_ports(slot, query, true)) {
    return false;
  }
  if (need.is_none()) return true;
  if (need.is_whole()) {
    return node.gpu_count > 0 && (need.whole_all || node.gpu_count >= need.whole_count);
  }
  return std::any_of(fleet.gpus(slot), fleet.gpus(slot) + node.gpu_count, [&](const FleetGpu& gpu) {
    return gpu.total_mib > 0 && gpu.total_mib >= need.shared_memory_mib &&
           need.shared_containers < gpu.client_slots;
  });
}

}  // namespace cotenant::core
