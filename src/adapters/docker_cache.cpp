#include "adapters/docker_cache.h"

namespace cotenant::adapters {

std::uint64_t DockerCache::generation() const {
  const std::lock_guard lock(mutex_);
  return generation_;
}

std::optional<ports::ContainerState> DockerCache::get(const std::string& id,
                                                      Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || now - found->second.read_at > kMaxAge) return std::nullopt;
  return found->second.state;
}

void DockerCache::put(const ports::ContainerState& state, std::uint64_t generation,
                      Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (generation != generation_) return;
  if (entries_.size() >= kEntriesMax) {
    std::erase_if(entries_, [&](const auto& old) { return now - old.second.read_at > kMaxAge; });
  }
  if (state.phase != ports::ContainerPhase::kRunning || entries_.size() >= kEntriesMax) {
    entries_.erase(state.id);
    return;
  }
  entries_.insert_or_assign(state.id, Entry{state, now});
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
