#include "agent/image_policy.h"

#include <algorithm>
#include <array>
#include <utility>

namespace cotenant::agent {
namespace {

constexpr std::array<std::pair<PullBehavior, std::string_view>, 4> kBehaviorNames{
    {{PullBehavior::kDefault, "default"},
     {PullBehavior::kAlways, "always"},
     {PullBehavior::kOnce, "once"},
     {PullBehavior::kPreferCached, "prefer-cached"}}};

}  // namespace

std::string_view to_string(PullBehavior behavior) {
  for (const auto& [known, name] : kBehaviorNames) {
    if (known == behavior) return name;
  }
  return "";
}

std::optional<PullBehavior> parse_pull_behavior(std::string_view text) {
  for (const auto& [behavior, name] : kBehaviorNames) {
    if (name == text) return behavior;
  }
  return std::nullopt;
}

PullDecision decide_pull(PullBehavior behavior, std::string_view image,
                         const std::optional<ports::ImageInfo>& cached, bool pulled_before) {
  if (behavior == PullBehavior::kAlways || !cached) return PullDecision::kPull;
  switch (behavior) {
    case PullBehavior::kAlways:
      break;
    case PullBehavior::kPreferCached:
      return PullDecision::kUseCached;
    case PullBehavior::kOnce:
      return pulled_before ? PullDecision::kUseCached : PullDecision::kPull;
    case PullBehavior::kDefault:
      return image.find('@') != std::string_view::npos || cached->repo_digests.empty()
                 ? PullDecision::kUseCached
                 : PullDecision::kPullOrUseCached;
  }
  return PullDecision::kPull;
}

std::vector<PulledImage> images_to_remove(const std::vector<PulledImage>& pulled,
                                          const std::set<std::string>& ids_in_use,
                                          const std::set<std::string>& names_wanted,
                                          const ImageCleanupOptions& options, base::TimeMs now_ms) {
  std::vector<PulledImage> old;
  for (const PulledImage& image : pulled) {
    if (ids_in_use.contains(image.id) || names_wanted.contains(image.name)) continue;
    if (now_ms - image.last_used_at_ms >= options.minimum_age_ms) old.push_back(image);
  }
  std::stable_sort(old.begin(), old.end(), [](const PulledImage& a, const PulledImage& b) {
    return a.last_used_at_ms < b.last_used_at_ms;
  });
  if (old.size() > options.images_per_cycle) old.resize(options.images_per_cycle);
  return old;
}

}  // namespace cotenant::agent
