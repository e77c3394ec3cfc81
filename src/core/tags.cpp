#include "core/tags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"

namespace cotenant::core {

base::Result<Tags> merged_tags(Tags present, const Tags& added) {
  for (const auto& [key, value] : added) present[key] = value;
  const auto own = std::count_if(present.begin(), present.end(),
                                 [](const auto& tag) { return !is_platform_tag(tag.first); });
  if (static_cast<std::size_t>(own) <= base::limits::kTagsPerResource) return present;
  return base::fail(base::ErrorCode::kInvalidParameter,
                    fmt::format("tags: the resource would have {} tags; at most {} are possible",
                                own, base::limits::kTagsPerResource));
}

}  // namespace cotenant::core
