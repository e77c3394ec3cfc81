// What the engine said about containers, so that a poll need not inspect each again: as long as the
// engine's list shows a container in the same phase, only its start could have changed, or (of a
// stopped one) a start that nobody saw. Entries go when this process or an event touches the
// container, and with time, because events can be lost. Any thread; owns copies.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "ports/container_runtime.h"

namespace cotenant::adapters {

class DockerCache {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kMaxAge{30};
  static constexpr std::chrono::seconds kMaxAgeStopped{600};
  static constexpr std::size_t kEntriesMax = 8192;

  // Taken before the engine is asked: put() refuses an answer that may be older than a forget().
  std::uint64_t generation() const;
  // `listed`: the phase in the engine's list, which a start that failed does not change.
  std::optional<ports::ContainerState> get(const std::string& id, ports::ContainerPhase listed,
                                           Clock::time_point now) const;
  void put(const ports::ContainerState& state, ports::ContainerPhase listed,
           std::uint64_t generation, Clock::time_point now);
  // An empty id forgets all.
  void forget(const std::string& id);

 private:
  struct Entry {
    ports::ContainerState state;
    ports::ContainerPhase listed;
    Clock::time_point read_at;
    bool is_old(Clock::time_point now) const;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::uint64_t generation_ = 0;
};

}  // namespace cotenant::adapters
