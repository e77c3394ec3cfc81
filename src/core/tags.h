// Labels that people put on resources, and ECS's rules about them (ECS developer guide, "Tagging
// resources"; ECS API reference, Tag): at most 50, keys that begin with "aws:" are the platform's.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cotenant::core {

using Tags = std::map<std::string, std::string>;

// What enableECSManagedTags puts onto a task.
inline constexpr std::string_view kClusterNameTag = "aws:ecs:clusterName";

inline bool is_platform_tag(std::string_view key) {
  return key.substr(0, 4) == "aws:";
}

// The new ones win over those of the same key. Errors: kInvalidParameter when there would be more
// than limits::kTagsPerResource beside the platform's.
base::Result<Tags> merged_tags(Tags present, const Tags& added);

}  // namespace cotenant::core
