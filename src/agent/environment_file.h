// Environment files: lines of NAME=VALUE. A line without '=' or that begins with '#' is passed over;
// nothing is quoted or expanded. Source: ECS developer guide, "Pass environment variables".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/task_definition.h"

namespace cotenant::agent {

// Of variables that stand twice the first is taken.
std::vector<core::EnvironmentVariable> parse_environment_file(std::string_view text);

// Errors: kClient, with the path: not readable, or larger than limits::kEnvironmentFileBytes.
base::Result<std::vector<core::EnvironmentVariable>> read_environment_file(const std::string& path);

}  // namespace cotenant::agent
