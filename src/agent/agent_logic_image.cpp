// The part of the agent's logic that is about images: which are made available for whom.
#include <algorithm>

#include "agent/agent_logic.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using base::TimeMs;
using core::DesiredContainer;
using core::DesiredTask;

// Engines fetch about three layers at a time; more pulls at once would only make each slower.
constexpr std::size_t kPullsMax = 4;
// ECS agent: maximumPullRetries.
constexpr int kPullAttempts = 5;

}  // namespace

bool AgentLogic::awaits_image(const DesiredTask& task, const DesiredContainer& container) const {
  return find_state(container.id) == nullptr && settled(container.id) &&
         !memory_.at(container.id).image_ready && !unwanted(container, ending(task));
}

void AgentLogic::step_images(TimeMs now_ms) {
  std::set<std::string> waited_for;
  for (const auto& [task_id, task] : desired_) {
    for (const DesiredContainer& container : task.containers) {
      if (!awaits_image(task, container)) continue;
      const std::string& image = container.definition.image;
      waited_for.insert(image);
      // One that comes while its image is pulled has part in that.
      PullTimes& times = pull_times_[task_id];
      if (images_[image].pulling && times.started_at_ms == 0) times.started_at_ms = now_ms;
    }
  }
  std::erase_if(images_, [&](const auto& entry) {
    return !waited_for.contains(entry.first) && !busy_images_.contains(entry.first);
  });
  for (const std::string& image : waited_for) {
    if (busy_images_.size() >= kPullsMax) return;
    if (busy_images_.contains(image) || !images_.at(image).retry.due(now_ms)) continue;
    issue({0, PullImage{image}}, now_ms);
  }
}

void AgentLogic::note_pull_began(const std::string& image, TimeMs now_ms) {
  if (!busy_images_.contains(image)) return;  // it was given up
  images_[image].pulling = true;
  for (const auto& [task_id, task] : desired_) {
    for (const DesiredContainer& container : task.containers) {
      const auto memory = memory_.find(container.id);
      if (container.definition.image != image || memory == memory_.end()) continue;
      if (find_state(container.id) != nullptr || memory->second.image_ready) continue;
      PullTimes& times = pull_times_[task_id];
      if (times.started_at_ms == 0) times.started_at_ms = now_ms;
    }
  }
}

void AgentLogic::conclude_pull(const InFlight& ended, const base::Status& status, TimeMs now_ms) {
  Image& image = images_[ended.image];
  image.pulling = false;
  std::string failure;
  if (!status) {
    image.retry.failed(now_ms);
    const base::Error& error = status.error();
    if (error.code == ErrorCode::kUnavailable) return;  // the engine: until it is back
    const bool final = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kClient;
    if (!final && ++image.attempts < kPullAttempts) return;
    failure = "CannotPullContainerError: ";
    if (!final) failure += "tried " + std::to_string(kPullAttempts) + " times: ";
    failure += error.message;
  }
  for (const auto& [task_id, task] : desired_) {
    bool waits = false;
    for (const DesiredContainer& container : task.containers) {
      const auto found = memory_.find(container.id);
      if (found == memory_.end() || found->second.image_ready ||
          found->second.last.status == core::ContainerStatus::kStopped ||
          find_state(container.id) != nullptr) {
        continue;
      }
      if (container.definition.image != ended.image) {
        waits = true;
      } else if (status) {
        found->second.image_ready = true;
      } else {
        found->second.failure = failure;
      }
    }
    PullTimes& times = pull_times_[task_id];
    const bool over = !waits || !failure.empty();
    if (times.started_at_ms != 0 && times.stopped_at_ms == 0 && over) times.stopped_at_ms = now_ms;
  }
  images_.erase(ended.image);
}

std::set<std::string> AgentLogic::wanted_images() const {
  std::set<std::string> images;
  for (const auto& [task_id, task] : desired_) {
    for (const DesiredContainer& container : task.containers) {
      images.insert(container.definition.image);
    }
  }
  return images;
}

}  // namespace cotenant::agent
