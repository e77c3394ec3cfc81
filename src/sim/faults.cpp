#include "sim/faults.h"

namespace cotenant::sim {

Faults Faults::roll(Dice& dice) {
  // Each kind is there in about half of the runs, at a tenth to all of its rate.
  const auto rate = [&](std::int64_t full) -> std::int64_t {
    return dice.per_mille(500) ? 0 : dice.between((full + 9) / 10, full);
  };
  Faults faults;
  faults.frame_lost = rate(20);
  faults.frame_doubled = rate(40);
  faults.frame_overtaken = rate(40);
  faults.frame_late = rate(40);
  faults.connection_cut = rate(60);
  faults.plane_killed = rate(30);
  faults.agent_killed = rate(40);
  faults.machine_rebooted = rate(8);
  faults.engine_away = rate(20);
  faults.clock_jump = rate(20);
  faults.container_exits = rate(80);
  faults.container_erased = rate(10);
  faults.daemon_dies = rate(20);
  faults.commit_refused = rate(15);
  faults.commit_unknown = rate(8);
  faults.killed_at_commit = rate(10);
  faults.action_fails = rate(80);
  faults.action_lies = rate(40);
  faults.action_slow = rate(150);
  faults.action_very_slow = rate(20);
  faults.answer_lost = rate(20);
  faults.answer_doubled = rate(40);
  faults.gpus_change = rate(900);
  faults.report_repeated = rate(100);
  return faults;
}

}  // namespace cotenant::sim
