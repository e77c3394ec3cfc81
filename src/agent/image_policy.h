// When an image is pulled, and which of the images that cotenant pulled may go. Pure.
// Source: ECS agent, ECS_IMAGE_PULL_BEHAVIOR and its automated image clean-up
// (ECS_IMAGE_CLEANUP_INTERVAL, ECS_IMAGE_MINIMUM_CLEANUP_AGE, ECS_NUM_IMAGES_DELETE_PER_CYCLE).
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "ports/image_store.h"

namespace cotenant::agent {

enum class PullBehavior {
  kDefault,       // pull; where that fails, what is on the engine already
  kAlways,        // pull, or fail
  kOnce,          // pull what cotenant has not pulled before (or has cleaned up)
  kPreferCached,  // pull what is not on the engine; nothing is cleaned up
};
std::string_view to_string(PullBehavior behavior);  // "default", "always", "once", "prefer-cached"
std::optional<PullBehavior> parse_pull_behavior(std::string_view text);

enum class PullDecision { kUseCached, kPull, kPullOrUseCached };

// `cached`: the image on the engine, if it is there. Beyond ECS's rules, `default` does not ask a
// registry for what can only be right already: a name with a digest, and an image that never was in
// a registry (built or imported here; whoever owns that name out there is somebody else).
PullDecision decide_pull(PullBehavior behavior, std::string_view image,
                         const std::optional<ports::ImageInfo>& cached, bool pulled_before);

struct ImageCleanupOptions {
  bool enabled = true;
  base::TimeMs interval_ms = 30 * 60'000;
  base::TimeMs minimum_age_ms = 60 * 60'000;  // since it was pulled or last used
  std::size_t images_per_cycle = 5;
};

// An image that cotenant has pulled.
struct PulledImage {
  std::string name;
  std::string id;
  base::TimeMs last_used_at_ms = 0;
  friend bool operator==(const PulledImage&, const PulledImage&) = default;
};

// Oldest first: neither in use by a container, nor wanted by a task, nor too young. A time in the
// future (the clock was set back) counts as now.
std::vector<PulledImage> images_to_remove(const std::vector<PulledImage>& pulled,
                                          const std::set<std::string>& ids_in_use,
                                          const std::set<std::string>& names_wanted,
                                          const ImageCleanupOptions& options, base::TimeMs now_ms);

}  // namespace cotenant::agent
