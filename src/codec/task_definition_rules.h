// The rules of RegisterTaskDefinition about what containers get of their host, about each other and
// about volumes. What a single member may be stands in the model and in api_bounds.h; which members
// are offered in member_verdicts.h. Each refusal names the member and what would be right.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "core/task_definition.h"

namespace cotenant::codec {

// `document` has passed check_input(); `definition` was read from it. Appends warnings.
// Errors: kInvalidParameter, kUnsupportedFeature.
base::Status check_task_settings(const Json& document, const core::TaskDefinition& definition,
                                 std::vector<std::string>& warnings);

// dependsOn, links, volumesFrom: names exist, conditions can come true, no circle.
base::Status check_container_order(const core::TaskDefinition& definition);

}  // namespace cotenant::codec
