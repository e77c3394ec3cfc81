// The `filter` of ListContainerInstances: an expression of ECS's cluster query language.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "core/state.h"

namespace cotenant::server {

// True for the instances that are wanted. Runs on the core loop's thread; no side effects.
using InstanceFilter = std::function<bool(const core::State&, const core::Instance&)>;

// An empty expression wants all. Errors: kInvalidParameter, with the column.
base::Result<InstanceFilter> make_instance_filter(std::string_view expression);

}  // namespace cotenant::server
