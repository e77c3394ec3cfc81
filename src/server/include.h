// The member `include` of the Describe operations.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "codec/ecs_request.h"
#include "codec/ecs_response.h"
#include "codec/json.h"

namespace cotenant::server {

inline codec::Included decode_include(const codec::Json& body) {
  codec::Included included;
  included.tags = codec::includes(body, "TAGS");
  included.statistics = codec::includes(body, "STATISTICS");
  return included;
}

// A warning for each field that is asked for and that cotenant has nothing to show of.
inline std::vector<std::string> include_warnings(const codec::Json& body,
                                                 std::initializer_list<std::string_view> offered) {
  std::vector<std::string> warnings;
  for (const codec::Json& item : body.array_or_empty("include")) {
    const std::string& field = item.as_string();
    if (std::find(offered.begin(), offered.end(), field) != offered.end()) continue;
    warnings.push_back(fmt::format("include: {} is not offered; there is nothing to show", field));
  }
  return warnings;
}

}  // namespace cotenant::server
