#include "adapters/docker_cache.h"

namespace cotenant::adapters {

std::uint64_t DockerCache::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

bool DockerCache::Entry::is_old(Clock::time_point now) const {
  return now - read_at >
         (state.phase == ports::ContainerPhase::kStopped ? kMaxAgeStopped : kMaxAge);
}

std::optional<ports::ContainerState> DockerCache::get(const std::string& id,
                                                      ports::ContainerPhase listed,
                                                      Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.listed != listed || found->second.is_old(now)) {
    return std::nullopt;
  }
  return found->second.state;
}

void DockerCache::put(const ports::ContainerState& state, ports::ContainerPhase listed,
                      std::uint64_t generation, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return;
  if (entries_.size() >= kEntriesMax) {
    std::erase_if(entries_, [&](const auto& old) { return old.second.is_old(now); });
  }
  // One that was only created is about to change.
  if (state.phase == ports::ContainerPhase::kCreated || entries_.size() >= kEntriesMax) {
    entries_.erase(state.id);
    return;
  }
  entries_.insert_or_assign(state.id, Entry{state, listed, now});
}

void DockerCache::forget(const std::string& id) {
  const std::lock_guard lock(mutex_);
  ++generation_;
  if (id.empty()) {
    entries_.clear();
  } else {
    entries_.erase(id);
  }
}

}  // namespace cotenant::adapters
