// The control plane's process in a run: the real engine and hub behind a queue on virtual time.
//
// It may be killed at any moment, also in the middle of a commit: then no answer and no frame leaves
// it any more, and what waited is forgotten. start() makes the next one from what the store holds.
// The commands that were applied are kept since the start, so that they can be replayed.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/agent_hub.h"
#include "server/command_queue.h"
#include "server/core_engine.h"
#include "sim/sim_store.h"
#include "sim/wire.h"

namespace cotenant::sim {

class Plane final : public server::CommandQueue {
 public:
  // `on_batch` is called after each batch and tick of a living plane: nothing has answered since.
  Plane(Env& env, SimStore& store, std::function<void()> on_batch);
  ~Plane() override;

  void start();
  void kill();
  bool up() const { return engine_ != nullptr && !dead_; }
  void jump_clock(base::TimeMs by_ms) { clock_.offset_ms += by_ms; }
  base::TimeMs clock_offset_ms() const { return clock_.offset_ms; }

  // Null: nobody listens.
  std::shared_ptr<Wire> connect(const std::string& name,
                                std::shared_ptr<ports::WebSocketListener> agent);

  base::Status post(core::Command command, server::CommandDone done) override;
  base::Status post_always(core::Command command, server::CommandDone done) override;

  // The plane is up.
  const core::State& state() const { return engine_->state(); }
  bool writable() const { return engine_->writable(); }
  bool failed() const { return engine_->failed().has_value(); }
  // Applies what was applied since the start once more, to what the store held then. Nothing: cannot
  // be told, since batches were rolled back.
  bool can_replay() const { return log_complete_; }
  core::State replay() const;

 private:
  struct PlaneClock final : base::Clock {
    explicit PlaneClock(const Scheduler& time) : scheduler(time) {}
    base::TimeMs now_ms() const override { return scheduler.now_ms() + offset_ms; }
    const Scheduler& scheduler;
    base::TimeMs offset_ms = 0;
  };
  struct Applied {
    core::Command command;
    base::TimeMs now_ms = 0;
  };

  void enqueue(core::Command command, server::CommandDone done);
  void run_batch();
  void tick();
  void settle();  // after anything that the engine did

  Env& env_;
  SimStore& store_;
  const std::function<void()> on_batch_;
  PlaneClock clock_;
  std::unique_ptr<server::CoreEngine> engine_;
  std::unique_ptr<server::AgentHub> hub_;
  std::deque<server::PendingCommand> queue_;
  std::vector<std::shared_ptr<Wire>> wires_;
  bool dead_ = false;       // killed, and not yet taken away
  std::uint64_t life_ = 0;  // which process
  std::map<std::string, std::string> loaded_;
  std::uint64_t seed_ = 0;
  std::vector<Applied> log_;
  bool log_complete_ = true;
};

}  // namespace cotenant::sim
