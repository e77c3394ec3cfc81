// A GPU machine in a run: a container engine, MPS daemons, and the agent's process with the real
// logic, protocol and action runner on virtual time.
//
// The agent may be killed, the machine be rebooted; containers and daemons outlive the agent. What
// must hold of any machine is checked at each effect of an action (check_*).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/action.h"
#include "agent/image_keeper.h"
#include "core/instance.h"
#include "fakes/fake_container_runtime.h"
#include "fakes/fake_gpu_wiring.h"
#include "fakes/fake_image_store.h"
#include "fakes/fake_mps_control.h"
#include "sim/plane.h"

namespace cotenant::sim {

class Node {
 public:
  Node(Env& env, Plane& plane, core::InstanceRegistration registration);
  ~Node();

  void start_agent();
  void kill_agent();
  void reboot();
  // Once a second: what befalls a machine.
  void disturb();
  // Nothing that is on its way comes later than soon; the engine is there.
  void calm();

  const core::InstanceRegistration& registration() const { return registration_; }
  const std::string& id() const { return registration_.id; }
  bool agent_runs() const { return agent_ != nullptr; }
  bool idle() const;  // no action is on its way

  struct Running {
    std::string task_id;
    std::string container_id;
    std::string runtime_id;
  };
  std::vector<Running> running() const;
  std::vector<std::string> daemons() { return mps_.running(); }
  // GPUs that a sharing container which runs uses.
  std::set<std::string> shared_gpus() const;

  std::int64_t containers_started() const {
    return static_cast<std::int64_t>(ever_started_.size());
  }
  // Asked at the start of a container: whether its task may have one.
  void set_may_run(std::function<bool(const std::string& task_id)> may_run) {
    may_run_ = std::move(may_run);
  }
  // Asked before somebody's hand removes a container: whether the control plane has seen it run.
  void set_seen_running(std::function<bool(const std::string& container_id)> seen) {
    seen_running_ = std::move(seen);
  }

 private:
  void cut_connection();
  struct Agent;
  class Connection;
  struct Effect;

  bool fault(std::int64_t per_mille) { return env_.dice.per_mille(per_mille); }
  void step();
  void tick(std::uint64_t life);
  void take_snapshot();
  void connect(std::uint64_t life);
  void reconnect_later(bool refused);
  void begin(const agent::Action& action);
  void take_effect(const std::shared_ptr<Effect>& effect);
  base::Status act(const agent::Action& action);
  void answer(const std::shared_ptr<Effect>& effect, base::TimeMs delay_ms);
  void exit_all(int exit_code);
  void change_gpus();
  void remember_report();
  void repeat_report();
  void sync_clock();

  void check_before(const agent::Action& action);
  void check_gpus();

  Env& env_;
  Plane& plane_;
  const core::InstanceRegistration whole_;   // as the machine was built
  core::InstanceRegistration registration_;  // as it is now
  fakes::FakeContainerRuntime runtime_;
  fakes::FakeMpsControl mps_;
  fakes::FakeGpuWiring wiring_;
  fakes::FakeImageStore images_;
  struct WallClock final : base::Clock {
    explicit WallClock(const Scheduler& time) : scheduler(time) {}
    base::TimeMs now_ms() const override { return scheduler.now_ms(); }
    const Scheduler& scheduler;
  };
  const WallClock wall_clock_;
  agent::ImageKeeper keeper_;
  std::function<bool(const std::string&)> may_run_;
  std::function<bool(const std::string&)> seen_running_;

  std::int64_t epoch_ = 0;  // on the agent's disk
  std::uint64_t life_ = 0;  // which agent process
  std::unique_ptr<Agent> agent_;
  std::vector<std::shared_ptr<Effect>> effects_;  // on their way
  base::TimeMs away_until_ms_ = 0;
  bool away_ = false;
  std::vector<core::TaskObservation> old_reports_;

  // For the checks.
  std::int64_t effect_count_ = 0;
  std::map<std::string, std::int64_t> created_at_;       // container id -> effect_count_
  std::map<std::string, std::int64_t> last_good_probe_;  // GPU -> effect_count_
  std::set<std::string> ever_started_;                   // container ids
};

}  // namespace cotenant::sim
