// What the node does about what it should run: desired and observed in, actions and reports out.
//
// Pure: no I/O, threads, clock or log; a value that one thread owns. Level-triggered: each step
// looks at the newest snapshot and at what is desired. Results of actions only say "look again";
// they may be lost (each action has a deadline), late or doubled. A new object that knows nothing
// continues where another one ended, because the containers' labels and the daemons' records say
// all that is needed.
//
// Rules (docs/architecture.md, "The node"):
//  * an image is made available once for all containers that wait for it, a few images at a time; a
//    pull that fails is tried again, up to a bound;
//  * all containers of a task are created before the first is started; they start when what they
//    depend on permits it, and stop in the reverse order (start_order.h); a container is started
//    once, and again only by its restart policy; an essential container that stopped or failed
//    ends its task, also without a control plane; so does a dependency that can never come true;
//  * a sharing container is created only once its GPU's daemon runs, because the engine looks for the
//    mounted socket at the creation;
//  * a sharing container starts only after its GPU's daemon has answered a probe that was sent
//    after the container was created (health_gate.h); one that runs is not gated again;
//  * a whole-GPU container starts only on GPUs without a daemon;
//  * at most one action at a time per container, and per GPU's daemon;
//  * nothing is touched before a full desired state has come, nor while the engine is away.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/action.h"
#include "agent/health_gate.h"
#include "agent/retry.h"
#include "agent/start_order.h"
#include "base/clock.h"
#include "core/desired.h"
#include "ports/container_runtime.h"

namespace cotenant::agent {

struct LogicOptions {
  // How long a stopped container that nobody desires is kept for those who want to look into it.
  base::TimeMs cleanup_wait_ms = 3'600'000;
  // How long a daemon outlives the last sharing container on its GPU.
  base::TimeMs daemon_linger_ms = 30'000;
};

struct Snapshot {
  // The containers with this instance's label; nothing when the engine does not answer.
  std::optional<std::vector<ports::ContainerState>> containers;
  std::vector<std::string> daemons;  // UUIDs of the GPUs whose daemon runs
};

class AgentLogic {
 public:
  explicit AgentLogic(LogicOptions options) : options_(options) {}

  void desire_all(std::vector<core::DesiredTask> tasks);
  void desire_changes(std::vector<core::DesiredTask> tasks,
                      const std::vector<std::string>& removed);

  // begin_snapshot() before the first question is asked, observe() with its answer: an action that
  // ends in between makes the snapshot stale for what it touched. Snapshots that come out of order
  // are ignored.
  std::uint64_t begin_snapshot() { return ++seq_; }
  void observe(std::uint64_t token, Snapshot snapshot);

  void finish(const ActionResult& result, base::TimeMs now_ms);
  // A registry is being asked for the image of a PullImage that is in flight.
  void note_pull_began(const std::string& image, base::TimeMs now_ms);
  // Actions to carry out; they count as in flight from now on. `now_ms` must not go back.
  std::vector<Action> step(base::TimeMs now_ms);

  // Whether an action on a container or a daemon is under way.
  bool busy() const { return in_flight_.size() > busy_images_.size(); }
  // Of the newest snapshot; empty: there is no such container here.
  std::string runtime_id_of(const std::string& container_id) const;

  // The images that containers are to be created from or run from.
  std::set<std::string> wanted_images() const;

  // Each desired task with all of its containers, as of the last step. Before a full desired state
  // has come: what the labels of the containers tell.
  std::vector<core::TaskObservation> observations() const;

  // The tasks of which a container runs, or may come to run because its start was asked for; also those
  // that nobody desires any more. As of the newest snapshot.
  std::vector<std::string> running_tasks() const;

 private:
  // Attempts that end without an answer, or at a name that is taken, before the container has failed.
  static constexpr int kAttempts = 3;

  struct InFlight {
    Action action;
    base::TimeMs deadline_ms = 0;
    std::uint64_t issued_seq = 0;
    std::string container_id;        // of container actions
    std::string gpu_uuid;            // of daemon actions
    std::string image;               // of pulls
    std::vector<std::string> gated;  // the containers whose gate this attempt counts for
  };
  // What is remembered of a container beyond the snapshot.
  struct Memory {
    core::ContainerObservation last;
    bool image_ready = false;       // its image was made available
    std::string failure;            // it never runs (again), and why
    bool ran = false;               // or was asked to: when it is missing then, it is gone, not new
    std::uint64_t settled_seq = 0;  // a snapshot begun earlier is stale for it
    std::string created_runtime_id;
    std::uint64_t created_seq = 0;   // when it was first seen created, or stopped to start again
    base::TimeMs restart_of_ms = 0;  // the end that its restart policy answers
    bool ends_task = false;          // `failure` is a dependency that can never come true
    base::TimeMs first_seen_stopped_ms = 0;
    int timeouts = 0;
    int conflicts = 0;
    int missing_images = 0;  // creations that did not find the image after all
    int failed_removals = 0;
    Retry retry;
    HealthGate gate;
  };
  struct Gpu {
    bool daemon_runs = false;
    std::uint64_t settled_seq = 0;
    std::uint64_t good_probe_seq = 0;  // when the newest probe that succeeded was sent
    base::TimeMs good_probe_at_ms = 0;
    bool suspect = false;  // it runs and refused a probe: its server may need a start
    std::optional<base::TimeMs> idle_since_ms;
    Retry retry;
  };
  // An image that containers wait for.
  struct Image {
    int attempts = 0;
    bool pulling = false;
    Retry retry;
  };
  struct PullTimes {
    base::TimeMs started_at_ms = 0;
    base::TimeMs stopped_at_ms = 0;
  };
  // Who uses a GPU at this step.
  struct GpuUse {
    bool sharing_wanted = false;         // a sharing container is to run
    bool sharing_active = false;         // ... or still runs
    bool whole_ready = false;            // a whole-GPU container waits for nothing but the GPU
    std::set<std::string> whole_active;  // whole-GPU containers that run or are being started
    std::vector<std::string>
        waiting;  // sharing containers that wait for nothing but daemon or gate
  };

  void expire_actions(base::TimeMs now_ms);
  void conclude(const InFlight& ended, const base::Status& status, base::TimeMs now_ms);
  void conclude_create(Memory& memory, const base::Status& status, base::TimeMs now_ms);
  void conclude_start(Memory& memory, const base::Status& status, base::TimeMs now_ms);
  void conclude_pull(const InFlight& ended, const base::Status& status, base::TimeMs now_ms);
  void conclude_daemon(const InFlight& ended, const base::Status& status, base::TimeMs now_ms);

  void index_engine();
  const ports::ContainerState* find_state(const std::string& container_id) const;
  bool settled(const std::string& container_id) const;
  bool starting(const std::string& container_id) const;
  bool ending(const core::DesiredTask& task) const;
  bool all_created(const core::DesiredTask& task) const;
  // It must not run, or has run.
  bool unwanted(const core::DesiredContainer& container, bool task_ends) const;
  bool ready(const core::DesiredTask& task, const core::DesiredContainer& container,
             base::TimeMs now_ms) const;
  // Nothing is in the way of its creation but a daemon that does not run yet.
  bool awaits_daemon(const core::DesiredTask& task, const core::DesiredContainer& container,
                     base::TimeMs now_ms) const;

  // agent_logic_order.cpp
  bool dependencies_met(const core::DesiredTask& task, const core::DesiredContainer& container,
                        base::TimeMs now_ms) const;
  // Gives up containers that can never start; true when there was one.
  bool fail_impossible_starts(const core::DesiredTask& task, base::TimeMs now_ms);
  bool may_create(const core::DesiredTask& task, const core::DesiredContainer& container) const;
  bool may_stop(const core::DesiredTask& task, const core::DesiredContainer& container) const;
  bool restart_due(const core::DesiredContainer& container,
                   const ports::ContainerState& state) const;
  StartVerdict start_verdict(const core::DesiredTask& task, const core::DesiredContainer& container,
                             base::TimeMs now_ms) const;

  // Gives the others the address of the task's pause container, and the reason why it failed.
  void observe_pause(const core::DesiredTask& task);

  // agent_logic_observe.cpp
  void observe_task(const core::DesiredTask& task);
  void observe_container(const core::DesiredContainer& container, bool stop, bool task_ends);

  void step_task(const core::DesiredTask& task, base::TimeMs now_ms);
  void step_stray(const ports::ContainerState& state, base::TimeMs now_ms);
  void forget_gone();

  // agent_logic_image.cpp
  bool awaits_image(const core::DesiredTask& task, const core::DesiredContainer& container) const;
  void step_images(base::TimeMs now_ms);

  // agent_logic_gpu.cpp
  void measure_gpu_use(base::TimeMs now_ms);
  void measure_container(const core::DesiredTask& task, const core::DesiredContainer& container,
                         base::TimeMs now_ms);
  void measure_stray(const ports::ContainerState& state);
  void fail_closed_gates(base::TimeMs now_ms);
  void step_gpu(const std::string& uuid, base::TimeMs now_ms);
  // It runs, and is not being stopped.
  bool daemon_usable(const std::string& gpu_uuid) const;
  bool gate_open(const std::string& container_id, const std::string& gpu_uuid,
                 base::TimeMs now_ms) const;
  bool gpus_permit(const core::DesiredContainer& container, base::TimeMs now_ms) const;

  InFlight& issue(Action action, base::TimeMs now_ms);

  LogicOptions options_;
  std::map<std::string, core::DesiredTask> desired_;
  bool full_desired_ = false;

  std::vector<ports::ContainerState> containers_;
  bool engine_up_ = false;
  std::uint64_t containers_seq_ = 0;
  std::uint64_t daemons_seq_ = 0;

  std::uint64_t seq_ = 0;  // orders snapshots, issues and results
  std::map<std::uint64_t, InFlight> in_flight_;
  std::map<std::string, std::uint64_t> busy_containers_;  // container id -> action id
  std::map<std::string, std::uint64_t> busy_gpus_;
  std::map<std::string, std::uint64_t> busy_images_;
  std::map<std::string, Memory> memory_;  // by container id
  std::map<std::string, Image> images_;
  std::map<std::string, PullTimes> pull_times_;  // by task id
  std::map<std::string, Gpu> gpus_;

  // Of the step in progress.
  std::map<std::string, std::size_t> primary_;  // container id -> index into containers_
  std::vector<std::size_t> strays_;             // containers that nobody desires
  std::map<std::string, GpuUse> use_;
  std::vector<Action> out_;
};

}  // namespace cotenant::agent
