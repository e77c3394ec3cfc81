// What a client asks of placement, in ECS's words: constraints and strategies of RunTask, and the
// constraints of a task definition. Source: ECS API reference, PlacementConstraint,
// PlacementStrategy, TaskDefinitionPlacementConstraint.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/query/query.h"

namespace cotenant::core {

enum class StrategyType { kBinpack, kSpread, kRandom };
std::string_view to_string(StrategyType type);  // "binpack", "spread", "random"

struct PlacementStrategy {
  StrategyType type = StrategyType::kRandom;
  // binpack: "cpu", "memory", "gpuMemory" or "policy:<name>"; spread: "instanceId" or
  // "attribute:<name>"; random: empty.
  std::string field;
  friend bool operator==(const PlacementStrategy&, const PlacementStrategy&) = default;
};

// The prefix of a field that names an attribute, or one of our policies.
inline constexpr std::string_view kAttributeField = "attribute:";
inline constexpr std::string_view kPolicyField = "policy:";

struct PlacementRules {
  bool distinct_instance = false;
  std::vector<Query> member_of;
  std::vector<PlacementStrategy> strategies;  // in the order in which they rank
};

}  // namespace cotenant::core
