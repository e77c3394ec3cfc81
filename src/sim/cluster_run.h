// One run of the simulator: a control plane, a few machines and callers, all from one seed.
//
// First faults, with the checks of safety at every step; then the faults stop and the cluster must
// come to rest as it should be; then everything is stopped and nothing may be left. The same seed and
// options give the same run, event by event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cotenant::sim {

struct RunOptions {
  std::uint64_t seed = 0;
  bool print = false;  // every line of the journal
  bool faults = true;  // false: only the workload
};

struct RunReport {
  std::vector<std::string> violations;
  std::uint64_t digest = 0;
  std::uint64_t events = 0;
  std::int64_t calls_acknowledged = 0;
  std::int64_t calls_unknown = 0;
  std::int64_t tasks_placed = 0;
  std::int64_t containers_started = 0;
  std::int64_t replays = 0;
  std::int64_t rested_after_ms = 0;  // from the end of the faults
};

RunReport run_cluster(const RunOptions& options);

}  // namespace cotenant::sim
