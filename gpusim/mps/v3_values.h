// What the verbs of servers and namespaces have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mps/v3_arguments.h"

namespace gpusim::mps {

// pinned-memory-limit, active-thread-percentage, client-priority; all or nothing. A text why not.
std::optional<std::string> set_v3_values(const V3Keys& keys, ClientDefaults* defaults,
                                         bool* has_percentage);

std::string no_server(std::string_view name);

}  // namespace gpusim::mps
