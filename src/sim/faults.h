// Which faults a run has, and how often. Each seed has its own mix, because faults hide one another:
// where everything is cut all the time, nothing ever gets far.
#pragma once

#include <cstdint>

#include "sim/dice.h"

namespace cotenant::sim {

// Chances in per mille, of each occasion that the comment names; 0: never.
struct Faults {
  // Of each frame.
  std::int64_t frame_lost = 0;  // the connection is cut some time after
  std::int64_t frame_doubled = 0;
  std::int64_t frame_overtaken = 0;
  std::int64_t frame_late = 0;  // by up to 20 s
  // Of each second.
  std::int64_t connection_cut = 0;
  std::int64_t plane_killed = 0;
  std::int64_t agent_killed = 0;
  std::int64_t machine_rebooted = 0;
  std::int64_t gpus_change = 0;  // of each reboot
  std::int64_t engine_away = 0;
  std::int64_t clock_jump = 0;
  std::int64_t container_exits = 0;   // one of a machine's
  std::int64_t container_erased = 0;  // likewise, by somebody else's hand
  std::int64_t daemon_dies = 0;
  std::int64_t report_repeated = 0;  // one that was true some time ago
  // Of each commit.
  std::int64_t commit_refused = 0;    // a phase in which the disk is full begins
  std::int64_t commit_unknown = 0;    // fsync failed: stored or not, the control plane stops
  std::int64_t killed_at_commit = 0;  // just before or just after it
  // Of each action of an agent.
  std::int64_t action_fails = 0;      // with or without its effect
  std::int64_t action_lies = 0;       // "done", and nothing happened
  std::int64_t action_slow = 0;       // seconds instead of milliseconds
  std::int64_t action_very_slow = 0;  // beyond its deadline
  std::int64_t answer_lost = 0;
  std::int64_t answer_doubled = 0;

  static Faults none() { return {}; }
  static Faults roll(Dice& dice);
};

}  // namespace cotenant::sim
