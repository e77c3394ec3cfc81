// placementConstraints and placementStrategy of a request or a task definition, which has passed
// check_input(). Errors: kInvalidParameter, naming the member.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "core/placement/placement_rules.h"

namespace cotenant::codec {

// `list` is the member's array. A task definition takes memberOf only (`distinct_allowed` false).
// Fills rules.distinct_instance and rules.member_of.
base::Status decode_placement_constraints(const Json::Array& list, bool distinct_allowed,
                                          core::PlacementRules& rules);

// Fills rules.strategies. A field that means nothing is warned about.
base::Status decode_placement_strategy(const Json::Array& list, core::PlacementRules& rules,
                                       std::vector<std::string>& warnings);

}  // namespace cotenant::codec
