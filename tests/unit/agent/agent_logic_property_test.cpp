// AgentLogic in a world with faults: actions take time, answers get lost, come late or twice,
// snapshots are old, containers exit and vanish, daemons die, the agent restarts without memory.
// What must never happen is checked by LogicWorld at each effect; what must happen, after the
// faults have stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "agent/agent_logic.h"
#include "base/prng.h"
#include "logic_world.h"

namespace cotenant::agent {
namespace {

using base::TimeMs;
using core::ContainerStatus;

class Chaos {
 public:
  explicit Chaos(std::uint64_t seed) : prng_(seed) {}

  void run(int rounds, bool faults) {
    faults_ = faults;
    for (int round = 0; round < rounds; ++round) one_round();
  }

  // The machine at rest, and the control plane content.
  void check_converged() {
    for (const core::TaskObservation& task : logic_.observations()) {
      for (const core::ContainerObservation& container : task.containers) {
        EXPECT_NE(container.status, ContainerStatus::kPending)
            << task.task_id << " " << container.name;
      }
    }
    std::set<std::string> wanted_daemons;
    std::set<std::string> desired_ids;
    for (const auto& [id, desired] : desired_) {
      for (const core::DesiredContainer& container : desired.containers) {
        desired_ids.insert(container.id);
      }
    }
    EXPECT_TRUE(pending_.empty());
    for (const auto& [id, entry] : world.entries) {
      const core::DesiredContainer& container = entry.plan.container;
      if (!desired_ids.contains(container.id)) {
        EXPECT_EQ(entry.state.phase, ports::ContainerPhase::kStopped) << container.id;
      } else if (LogicWorld::running(entry)) {
        EXPECT_FALSE(desired_.at(entry.plan.task_id).stop);
        if (!container.gpu_uuids.empty() && !LogicWorld::is_whole(entry)) {
          wanted_daemons.insert(container.gpu_uuids.front());
        }
      }
    }
    EXPECT_EQ(world.daemons, wanted_daemons);
    for (const auto& [id, desired] : desired_) EXPECT_FALSE(desired.stop) << "never ended: " << id;
  }

  LogicWorld world;
  int tasks_run = 0;
  int gates_failed = 0;
  int restarts = 0;
  int ordered = 0;

 private:
  struct Pending {
    Action action;
    TimeMs effect_at_ms = 0;
    std::vector<TimeMs> result_at_ms;  // none: lost; two: doubled
    bool done = false;
    base::Status status;
    bool orphaned = false;  // of an agent that is no more
  };

  std::uint64_t below(std::uint64_t bound) { return prng_.next() % bound; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }
  bool fault(std::uint64_t percent) { return faults_ && chance(percent); }

  void one_round() {
    world.now_ms += 50 + static_cast<TimeMs>(below(faults_ ? 1000 : 4000));
    world.probes_answer = !fault(25);
    world.probe_error = chance(50) ? base::ErrorCode::kTimeout : base::ErrorCode::kUnavailable;
    if (faults_) disturb();
    check_health();
    take_effect();
    deliver_results();
    snapshots();
    for (const Action& action : logic_.step(world.now_ms)) begin(action);
    control_plane();
  }

  void begin(const Action& action) {
    if (!full_sent_) ADD_FAILURE() << "before the full desired state: " << describe(action);
    for (const Pending& other : pending_) {
      if (!other.orphaned && !other.done && subject(other.action) == subject(action) &&
          !other.result_at_ms.empty() && other.result_at_ms.front() < world.now_ms + 60'000) {
        ADD_FAILURE() << "two at once: " << describe(other.action) << ", " << describe(action);
      }
    }
    Pending pending;
    pending.action = action;
    pending.effect_at_ms = world.now_ms + static_cast<TimeMs>(below(faults_ ? 4000 : 300));
    const TimeMs answer_ms = pending.effect_at_ms + static_cast<TimeMs>(below(500));
    // A pull may take hours: one whose answer is lost is not waited for here.
    if (!std::holds_alternative<PullImage>(action.what) && fault(4)) {
      if (chance(50)) pending.result_at_ms = {answer_ms + 400'000};  // long after its deadline
    } else {
      pending.result_at_ms = {answer_ms};
      if (fault(5)) pending.result_at_ms.push_back(answer_ms + 2000);
    }
    if (std::holds_alternative<StartContainer>(action.what)) {
      issued_starts_.insert(subject(action));
    }
    pending_.push_back(std::move(pending));
  }

  static std::string subject(const Action& action) {
    return std::visit(
        [](const auto& what) -> std::string {
          if constexpr (requires { what.gpu_uuid; }) {
            return what.gpu_uuid;
          } else if constexpr (requires { what.image; }) {
            return what.image;
          } else if constexpr (requires { what.plan; }) {
            return what.plan.container.id;
          } else {
            return what.container_id;
          }
        },
        action.what);
  }

  void take_effect() {
    for (Pending& pending : pending_) {
      if (pending.done || pending.effect_at_ms > world.now_ms) continue;
      pending.done = true;
      if (fault(5)) {
        const base::ErrorCode codes[] = {base::ErrorCode::kClient, base::ErrorCode::kUnavailable,
                                         base::ErrorCode::kTimeout};
        pending.status = base::fail(codes[below(3)], "fault");
        if (chance(50)) continue;  // an error without the effect, or in spite of it
        (void)world.apply(pending.action);
      } else {
        pending.status = world.apply(pending.action);
      }
    }
  }

  void deliver_results() {
    for (Pending& pending : pending_) {
      while (pending.done && !pending.result_at_ms.empty() &&
             pending.result_at_ms.front() <= world.now_ms) {
        pending.result_at_ms.erase(pending.result_at_ms.begin());
        if (!pending.orphaned) logic_.finish({pending.action.id, pending.status}, world.now_ms);
      }
    }
    std::erase_if(pending_, [](const Pending& p) { return p.done && p.result_at_ms.empty(); });
  }

  void snapshots() {
    if (!snapshot_taken_ && snapshot_token_ != 0) {
      snapshot_ = world.snapshot();
      snapshot_taken_ = true;
    } else if (snapshot_taken_ && chance(70)) {
      if (fault(3)) snapshot_.containers.reset();
      if (!fault(5)) logic_.observe(snapshot_token_, snapshot_);
      snapshot_taken_ = false;
      snapshot_token_ = 0;
    }
    if (snapshot_token_ == 0) snapshot_token_ = logic_.begin_snapshot();
  }

  void disturb() {
    for (auto& [id, entry] : world.entries) {
      if (LogicWorld::running(entry) && chance(1)) {
        world.exit(entry, static_cast<int>(below(3)), chance(10));
      }
    }
    if (!world.entries.empty() && chance(1)) {
      const auto victim =
          std::next(world.entries.begin(), static_cast<long>(below(world.entries.size())));
      // What ran, and vanished before anybody who still knows had seen it, cannot be told from new.
      const std::string& id = victim->second.plan.container.id;
      if (!world.ever_ran.contains(id) || issued_starts_.contains(id)) world.entries.erase(victim);
    }
    if (!world.daemons.empty() && chance(1)) world.daemons.erase(world.daemons.begin());
    if (chance(1)) restart();
  }

  void restart() {
    ++restarts;
    issued_starts_.clear();
    std::erase_if(world.ever_ran, [&](const std::string& id) {
      return std::none_of(world.entries.begin(), world.entries.end(),
                          [&](const auto& entry) { return entry.second.plan.container.id == id; });
    });
    logic_ = AgentLogic(LogicOptions{});
    full_sent_ = false;
    snapshot_token_ = 0;
    snapshot_taken_ = false;
    // The engine still creates, stops and removes what it was asked to; what is over before another
    // agent is up has happened by then or never: a start is short, a daemon's console ended with
    // the agent. (A start that came true after the next agent looked, and whose container exited
    // before that agent's own start, would run it twice: no engine offers to start only what never
    // ran.)
    for (Pending& pending : pending_) {
      const bool is_short = std::holds_alternative<StartDaemon>(pending.action.what) ||
                            std::holds_alternative<ProbeDaemon>(pending.action.what) ||
                            std::holds_alternative<StopDaemon>(pending.action.what) ||
                            std::holds_alternative<StartContainer>(pending.action.what);
      if (is_short && !pending.done) {
        if (chance(50)) (void)world.apply(pending.action);
        pending.done = true;
      }
      pending.orphaned = true;
      pending.result_at_ms.clear();
    }
  }

  // --- The control plane: reservations as core::GpuLedger keeps them. ---

  void control_plane() {
    if (full_sent_ || !faults_) hear();
    if (!full_sent_) {
      if (!chance(20)) return;
      std::vector<core::DesiredTask> all;
      for (const auto& [id, desired] : desired_) all.push_back(desired);
      logic_.desire_all(all);
      full_sent_ = true;
      return;
    }
    if (faults_ && desired_.size() < 6 && chance(8)) add_task();
    for (auto& [id, desired] : desired_) {
      if (faults_ && !desired.stop && chance(1)) {
        desired.stop = true;
        logic_.desire_changes({desired}, {});
      }
    }
  }

  void hear() {
    for (const core::TaskObservation& seen : logic_.observations()) {
      const auto found = desired_.find(seen.task_id);
      if (found == desired_.end()) continue;
      core::DesiredTask& desired = found->second;
      bool all_stopped = seen.containers.size() == desired.containers.size();
      for (std::size_t i = 0; i < seen.containers.size(); ++i) {
        if (seen.containers[i].status != ContainerStatus::kStopped) all_stopped = false;
        for (core::DesiredContainer& container : desired.containers) {
          if (container.definition.name != seen.containers[i].name) continue;
          if (seen.containers[i].status == ContainerStatus::kPending) continue;
          container.started = true;
          const bool ended = seen.containers[i].status == ContainerStatus::kStopped;
          if (ended && container.definition.essential && !desired.stop) {
            desired.stop = true;
            if (full_sent_) logic_.desire_changes({desired}, {});
          }
        }
        if (seen.containers[i].reason.starts_with("MPS")) ++gates_failed;
      }
      if (!all_stopped || !full_sent_) continue;
      for (const auto& [id, entry] : world.entries) {
        if (entry.plan.task_id == seen.task_id && LogicWorld::running(entry)) {
          ADD_FAILURE() << seen.task_id << " was reported stopped and runs";
        }
      }
      world.reported_stopped.insert(seen.task_id);
      const std::string gone = seen.task_id;
      desired_.erase(found);
      logic_.desire_changes({}, {gone});
    }
  }

  void add_task() {
    const std::string id = fmt::format("t{}", next_task_++);
    std::map<std::string, char> modes;
    for (const auto& [other, desired] : desired_) {
      for (const core::DesiredContainer& container : desired.containers) {
        for (const std::string& gpu : container.gpu_uuids) {
          modes[gpu] =
              std::holds_alternative<core::SharedGpu>(container.definition.gpu) ? 's' : 'w';
        }
      }
    }
    const std::string gpu = fmt::format("g{}", below(3));
    std::vector<core::DesiredContainer> containers = {plain(id + "-a")};
    const auto mode = modes.find(gpu);
    const std::uint64_t kind = below(4);
    if (kind <= 1) {
      if (mode != modes.end() && mode->second == 'w') return;
      containers = {sharing(id + "-a", gpu), sharing(id + "-b", gpu, chance(50))};
    } else if (kind == 2) {
      if (mode != modes.end()) return;
      containers = {whole(id + "-a", {gpu})};
    }
    if (chance(40)) containers.push_back(plain(id + "-side", chance(30)));
    give_order(containers);
    ++tasks_run;
    desired_[id] = task(id, containers);
    logic_.desire_changes({desired_[id]}, {});
  }

  // Restart policies, and containers that wait for another: each for at most one of those after it, so
  // that none waits for itself.
  void give_order(std::vector<core::DesiredContainer>& containers) {
    using Condition = core::DependencyCondition;
    for (std::size_t i = 0; i < containers.size(); ++i) {
      core::ContainerDefinition& definition = containers[i].definition;
      if (chance(30)) definition.life.restart = core::RestartPolicy{{2}, 20};
      if (i + 1 == containers.size() || !chance(40)) continue;
      core::ContainerDefinition& target =
          containers[i + 1 + below(containers.size() - i - 1)].definition;
      Condition condition = Condition::kStart;
      if (chance(30)) {
        condition = Condition::kHealthy;
        target.life.health_check.emplace();
      } else if (!target.essential && chance(60)) {
        condition = chance(50) ? Condition::kComplete : Condition::kSuccess;
      }
      definition.life.depends_on = {{target.name, condition}};
      target.life.start_timeout_s = 120;  // nothing ends by itself once the faults are over
      ++ordered;
    }
  }

  // What the engine's health checks say; without faults they come to say HEALTHY.
  void check_health() {
    for (auto& [id, entry] : world.entries) {
      if (!LogicWorld::running(entry) || !entry.plan.container.definition.life.health_check)
        continue;
      if (!chance(20)) continue;
      entry.state.health =
          fault(30) ? core::HealthStatus::kUnhealthy : core::HealthStatus::kHealthy;
    }
  }

  base::Prng prng_;
  AgentLogic logic_{LogicOptions{}};
  bool faults_ = true;
  std::deque<Pending> pending_;
  std::uint64_t snapshot_token_ = 0;
  bool snapshot_taken_ = false;
  Snapshot snapshot_;
  std::map<std::string, core::DesiredTask> desired_;
  bool full_sent_ = false;
  int next_task_ = 0;
  std::set<std::string> issued_starts_;  // container ids, by the agent that runs now
};

TEST(AgentLogicPropertyTest, HoldsUnderFaultsAndConvergesAfterwards) {
  int tasks_run = 0;
  int gates_failed = 0;
  int restarts = 0;
  int ordered = 0;
  int started_again = 0;
  std::size_t containers_run = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Chaos chaos(seed);
    chaos.run(600, true);
    chaos.run(800, false);
    EXPECT_EQ(chaos.world.violations, std::vector<std::string>{});
    chaos.check_converged();
    tasks_run += chaos.tasks_run;
    gates_failed += chaos.gates_failed;
    restarts += chaos.restarts;
    ordered += chaos.ordered;
    started_again += chaos.world.started_again;
    containers_run += chaos.world.ever_ran.size();
    if (HasFailure()) break;
  }
  // The world did happen.
  EXPECT_GT(tasks_run, 1000);
  EXPECT_GT(containers_run, 1000u);
  EXPECT_GT(gates_failed, 10);
  EXPECT_GT(restarts, 100);
  EXPECT_GT(ordered, 100);
  EXPECT_GT(started_again, 50);
}

}  // namespace
}  // namespace cotenant::agent
