// What is asked of placement: the need, and what else the node must satisfy.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/placement/fleet.h"
#include "core/task_definition.h"

namespace cotenant::core {

// The tests that a node must pass, in this order.
enum class PlacementTest { kAgent, kAttribute, kConstraint, kCpu, kMemory, kPorts, kGpu };
std::string_view reason(PlacementTest test);  // "AGENT", "ATTRIBUTE", "RESOURCE:CPU", ...

// A further demand on the node, with the reason that a refusal gives for it. Called for one node at
// a time and not for all of them: it must depend on nothing but what it captures and the slot.
struct PlacementConstraint {
  std::string reason;
  std::function<bool(NodeSlot)> admits;
  std::string text = {};  // the constraint itself, for explanations
  // It admits all nodes with the same attributes, or none of them.
  bool attributes_only = false;
};

struct PlacementQuery {
  TaskNeed need;
  std::vector<PlacementConstraint> constraints;
  // Whether the node gives the ports of the need: now, or when nothing runs on it (port_placement.h).
  // Unset: no port is needed.
  std::function<bool(NodeSlot, bool when_empty)> gives_ports;
  // The GPU models that the task may use, joined by '|', and the node classes that this makes, by
  // ClassId (a missing one: not). Empty, and nothing: all.
  std::string models;
  std::optional<std::vector<bool>> classes;

  // Policy `tight` ranks whole GPUs by idle GPUs; by their memory, where a replay of a fleet of mixed
  // sizes asks for it.
  bool wholes_by_memory = false;

  bool admits_class(ClassId id) const {
    return !classes || (id < classes->size() && (*classes)[id]);
  }
};

// Where a task goes.
struct PlacementChoice {
  NodeSlot slot = 0;
  GpuSet gpus;  // for a shared need one; for whole GPUs all of them
};

// The first test that a node fails, and of a constraint which one.
struct FailedTest {
  PlacementTest test = PlacementTest::kAgent;
  const PlacementConstraint* constraint = nullptr;
};

// Feasible: nothing, or why not.
std::optional<FailedTest> failed_test(const Fleet& fleet, NodeSlot slot,
                                      const PlacementQuery& query);

// The same without a reason and without the GPUs, for walks over the index.
bool node_admits(const Fleet& fleet, NodeSlot slot, const PlacementQuery& query);

// Could the node run the task if nothing else ran on it, all were healthy and its agent connected?
bool fits_when_empty(const Fleet& fleet, NodeSlot slot, const PlacementQuery& query);

}  // namespace cotenant::core
