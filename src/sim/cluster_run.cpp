#include "sim/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "codec/record.h"
#include "sim/client.h"
#include "sim/node.h"
#include "sim/plane.h"
#include "sim/state_checks.h"

namespace cotenant::sim {
namespace {

using base::TimeMs;

constexpr TimeMs kStartMs = 1'700'000'000'000;
constexpr TimeMs kRestWithinMs = 1'200'000;  // above the longest deadline of an action, twice
constexpr TimeMs kLookEveryMs = 5'000;
// Jumps stay within a day, or client tokens would rightly be forgotten.
constexpr TimeMs kJumpMs = 6 * 3600 * 1000;

core::InstanceRegistration machine(const std::string& id, std::int64_t gpus) {
  core::InstanceRegistration registration;
  registration.id = id;
  registration.cluster = "default";
  registration.cpu_units = 4096;
  registration.memory_mib = 8192;
  registration.agent_version = "sim";
  registration.gpu_simulated = true;
  if (gpus > 0) registration.attributes.emplace(core::kSharingAttribute, "");
  for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
    registration.gpus.push_back({fmt::format("GPU-{}-{}", id, gpu), "NVIDIA L4", 22563, 8});
  }
  return registration;
}

class ClusterRun {
 public:
  explicit ClusterRun(const RunOptions& options)
      : options_(options),
        dice_(options.seed),
        scheduler_(kStartMs),
        journal_(scheduler_, options.print),
        env_{scheduler_, dice_, faults_, journal_},
        store_(dice_, faults_, journal_),
        checks_(journal_),
        plane_(env_, store_, [this] { on_batch(); }),
        client_(env_, plane_) {}

  RunReport run() {
    start();
    if (options_.faults) faults_ = Faults::roll(dice_);
    disturb();
    work();
    scheduler_.run_until(scheduler_.now_ms() + dice_.between(40'000, 120'000));
    calm();
    const TimeMs rested_after_ms = rest("after the faults", [this] { return is_content(); });
    client_.stop_everything();
    rest("after everything was stopped", [this] { return is_empty(); });
    check_replay();
    return report(rested_after_ms);
  }

 private:
  void start() {
    const std::int64_t machines = dice_.between(1, 3);
    for (std::int64_t i = 0; i < machines; ++i) {
      nodes_.push_back(std::make_unique<Node>(
          env_, plane_, machine(fmt::format("{:032x}", i + 1), dice_.below(4))));
      Node& node = *nodes_.back();
      node.set_may_run([this, &node](const std::string& task_id) {
        return holds(node, task_id) || !is_registered(node);
      });
      client_.know_instance(node.id());
      node.set_seen_running([this](const std::string& id) { return seen_running(id); });
    }
    plane_.start();
    for (const auto& node : nodes_) node->start_agent();
    client_.register_definitions();
    scheduler_.run_until(scheduler_.now_ms() + 3000);
  }

  // What the control plane knew last: when it is down, what it will know again.
  const core::State& known() {
    if (plane_.up()) return plane_.state();
    if (stored_revision_ != store_.revision()) {
      stored_revision_ = store_.revision();
      auto state = codec::decode_records(store_.records());
      if (!state) journal_.violation("the store cannot be read: {}", state.error().message);
      if (state) stored_ = std::move(*state);
    }
    return stored_;
  }

  bool holds(const Node& node, const std::string& task_id) {
    const core::State& state = known();
    const auto found = state.tasks.find(task_id);
    return found != state.tasks.end() && found->second.instance_id == node.id() &&
           core::holds_reservation(found->second);
  }

  // Then nothing may run there that has no reservation: one that was deregistered must have stopped
  // everything before it joins again.
  bool is_registered(const Node& node) {
    const core::State& state = known();
    const auto found = state.instances.find(node.id());
    return found != state.instances.end() &&
           found->second.status != core::InstanceStatus::kInactive;
  }

  bool seen_running(const std::string& container_id) {
    for (const auto& [id, task] : known().tasks) {
      for (const core::TaskContainer& container : task.containers) {
        if (container.id == container_id) {
          return container.status != core::ContainerStatus::kPending;
        }
      }
    }
    return false;
  }

  void on_batch() {
    checks_.check(plane_.state());
    ++batches_;
    if (batches_ % 4 == 0) check_machines();
    if (batches_ % 32 == 0) check_deeply();
  }

  void check_deeply() {
    client_.check(plane_.state(), checks_.forgotten());
    // While writes are refused, what was read back is what is stored.
    checks_.check_stored(plane_.state(), store_.records());
  }

  // A task that the control plane calls STOPPED has nothing that runs.
  void check_machines() {
    for (const auto& node : nodes_) {
      if (!is_registered(*node)) continue;
      for (const Node::Running& running : node->running()) {
        if (holds(*node, running.task_id)) continue;
        journal_.violation("{}: container {} runs, whose task {} holds no reservation", node->id(),
                           running.container_id, running.task_id);
      }
    }
  }

  void check_replay() {
    if (!plane_.up() || !plane_.can_replay()) return;
    ++replays_;
    const core::State again = plane_.replay();
    if (encode_state(again) != encode_state(plane_.state()) ||
        reservations_of(again) != reservations_of(plane_.state())) {
      journal_.violation("the commands give another state when they are replayed");
    }
  }

  void disturb() {
    if (calm_) return;
    if (plane_.up() && dice_.per_mille(faults_.plane_killed)) {
      check_replay();
      plane_.kill();
    }
    if (dice_.per_mille(faults_.clock_jump)) {
      const TimeMs to_ms = dice_.between(-kJumpMs, kJumpMs);
      journal_.note("the clock jumps by {} ms", to_ms - plane_.clock_offset_ms());
      plane_.jump_clock(to_ms - plane_.clock_offset_ms());
    }
    for (const auto& node : nodes_) node->disturb();
    scheduler_.after(1000, [this] { disturb(); });
  }

  void work() {
    if (calm_) return;
    // Mostly one by one, at times a burst that fills a batch.
    for (std::int64_t calls = dice_.per_mille(50) ? dice_.between(2, 12) : 1; calls > 0; --calls) {
      client_.call();
    }
    scheduler_.after(dice_.between(20, 2500), [this] { work(); });
  }

  void calm() {
    journal_.note("the faults stop");
    calm_ = true;
    faults_ = Faults::none();
    store_.mend();
    // Connections stay: what was said on them has to suffice.
    for (const auto& node : nodes_) node->calm();
  }

  TimeMs rest(const char* when, const std::function<bool()>& rested) {
    const TimeMs began_ms = scheduler_.now_ms();
    while (!rested()) {
      if (scheduler_.now_ms() - began_ms >= kRestWithinMs) {
        journal_.violation("no rest {}: {}", when, restless_);
        break;
      }
      client_.mend();
      scheduler_.run_until(scheduler_.now_ms() + kLookEveryMs);
    }
    if (plane_.up()) check_deeply();
    return scheduler_.now_ms() - began_ms;
  }

  template <class... Args>
  bool restless(fmt::format_string<Args...> format, Args&&... args) {
    restless_ = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }

  // Nobody waits, everybody is connected, and no daemon runs that nobody needs.
  bool is_quiet() {
    if (!plane_.up()) return restless("the control plane is down");
    if (!plane_.writable()) return restless("the control plane refuses writes");
    if (!client_.idle()) return restless("a call waits for its answer");
    for (const auto& node : nodes_) {
      if (!node->idle()) return restless("{}: an action is on its way", node->id());
      const auto instance = plane_.state().instances.find(node->id());
      if (instance == plane_.state().instances.end() || !instance->second.agent_connected) {
        return restless("{} is not connected", node->id());
      }
      const std::vector<std::string> daemons = node->daemons();
      if (std::set<std::string>(daemons.begin(), daemons.end()) != node->shared_gpus()) {
        return restless("{}: daemons [{}] for GPUs [{}]", node->id(), fmt::join(daemons, ","),
                        fmt::join(node->shared_gpus(), ","));
      }
    }
    return true;
  }

  // Every task runs that should, and each of its containers that has not ended runs on its machine.
  bool is_content() {
    if (!is_quiet()) return false;
    std::set<std::pair<std::string, std::string>> running;  // machine, container id
    for (const auto& node : nodes_) {
      for (const Node::Running& each : node->running()) {
        running.emplace(node->id(), each.container_id);
      }
    }
    std::set<std::pair<std::string, std::string>> expected;
    for (const auto& [id, task] : plane_.state().tasks) {
      const bool stays = task.desired_status == core::DesiredStatus::kRunning;
      const auto wanted = stays ? core::TaskStatus::kRunning : core::TaskStatus::kStopped;
      if (task.last_status != wanted) {
        return restless("task {} is {} on {}, desired {}", id, core::to_string(task.last_status),
                        task.instance_id, core::to_string(task.desired_status));
      }
      if (!stays) continue;
      for (const core::TaskContainer& container : task.containers) {
        if (container.status == core::ContainerStatus::kRunning) {
          expected.emplace(task.instance_id, container.id);
        }
      }
    }
    if (running != expected) {
      return restless("{} containers run, {} should", running.size(), expected.size());
    }
    return true;
  }

  bool is_empty() {
    if (!is_content()) return false;
    for (const auto& [id, instance] : plane_.state().instances) {
      if (!instance.task_ids.empty() || instance.used_cpu_units != 0 ||
          instance.used_memory_mib != 0 ||
          instance.gpus.idle_count() != static_cast<int>(instance.gpus.size())) {
        return restless("{} is not empty: {}", id, reservations_of(plane_.state()));
      }
    }
    return true;
  }

  RunReport report(TimeMs rested_after_ms) {
    for (const auto& [key, value] : store_.records()) journal_.note("stored {}\t{}", key, value);
    RunReport report;
    report.violations = journal_.violations();
    report.digest = journal_.digest();
    report.events = scheduler_.events_run();
    report.calls_acknowledged = client_.acknowledged();
    report.calls_unknown = client_.unknown();
    report.tasks_placed = client_.tasks_placed();
    for (const auto& node : nodes_) report.containers_started += node->containers_started();
    report.replays = replays_;
    report.rested_after_ms = rested_after_ms;
    return report;
  }

  const RunOptions options_;
  Dice dice_;
  Scheduler scheduler_;
  Faults faults_;
  Journal journal_;
  Env env_;
  SimStore store_;
  StateChecks checks_;
  Plane plane_;
  Client client_;
  std::vector<std::unique_ptr<Node>> nodes_;
  core::State stored_;  // as of stored_revision_, while the control plane is down
  std::int64_t stored_revision_ = -1;
  bool calm_ = false;
  std::string restless_;
  std::int64_t batches_ = 0;
  std::int64_t replays_ = 0;
};

}  // namespace

RunReport run_cluster(const RunOptions& options) {
  return std::make_unique<ClusterRun>(options)->run();
}

}  // namespace cotenant::sim
