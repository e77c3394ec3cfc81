// The control plane's heart without its thread: apply a batch, store it, then answer.
//
// Not thread safe; CoreLoop runs it on one thread, a simulator may run it on virtual time. Commit
// before
// effect: no reply and no effect leaves before the records are durable.
//   A refused commit (disk full, read-only, busy): the state is loaded again, the batch answers
//   ServerException, reads go on, and writes are refused until a probe commit works.
//   An unknown outcome, or another writer: `failed()` is set for good; everything answers ServerException.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "base/result.h"
#include "core/reducer.h"
#include "ports/store.h"

namespace cotenant::server {

// The most tasks that one report may hold.
inline constexpr std::size_t kTasksPerReport = 15;
// The most records that one command may touch: ten tasks, a client token and what was learned of them,
// or a report's tasks and that. Expire alone may touch more; its records stand for themselves and may be cut
// anywhere.
inline constexpr std::size_t kRecordsPerCommand = 16;

// Hears of what has been stored. Called by the engine, before the replies of the batch.
class EffectSink {
 public:
  virtual ~EffectSink() = default;
  virtual void on_effects(const core::State& state, const core::Effects& effects) = 0;
};

// Hears of every state that is stored, for what is counted beside it. Called on the engine's thread.
class StateObserver {
 public:
  virtual ~StateObserver() = default;
  // Everything may be different from before.
  virtual void on_loaded(const core::State& state) = 0;
  virtual void on_stored(const core::State& state, const core::Effects& effects) = 0;
};

using CommandDone =
    std::function<void(const base::Result<core::Reply>& reply, const core::State& state)>;

struct PendingCommand {
  core::Command command;
  CommandDone done;
};

class CoreEngine {
 public:
  // Loads the state from the store (a new store gets the initial state). `sink` may be null.
  static base::Result<CoreEngine> load(ports::Store& store, const base::Clock& clock,
                                       std::uint64_t seed);

  void set_effect_sink(EffectSink* sink) { sink_ = sink; }
  // Hears of the present state at once. May be null.
  void set_observer(StateObserver* observer);

  void run(std::vector<PendingCommand> batch);
  // To be called about once a second: expiry, and the probe while writes are refused.
  void tick();

  const core::State& state() const { return state_; }
  // For dry runs on the engine's thread, which put back what they change (core/placement/dry_run.h).
  core::State& what_if_state() { return state_; }
  base::Prng prng() const { return prng_; }
  base::TimeMs now_ms() const { return clock_->now_ms(); }
  bool writable() const { return writable_; }
  // Why writes are refused; nothing while they are not.
  std::optional<base::Error> trouble() const;
  const std::optional<base::Error>& failed() const { return failed_; }

 private:
  struct Answer {
    CommandDone done;
    base::Result<core::Reply> reply;
  };

  using Writes = std::map<std::string, std::optional<std::string>>;  // by key: none twice

  struct Connection {
    bool connected = false;
    std::int64_t epoch = 0;
  };

  // What waits for one commit.
  struct Batch {
    Writes writes;
    std::size_t bytes = 0;
    core::Effects effects;
    std::vector<Answer> answers;
    // Connections are no records: what a refused hello changed of them is put back by hand, and what
    // has ended since ends again.
    std::map<std::string, Connection> connections_before;  // by instance, of the batch's hellos
    std::vector<core::DisconnectInstance> disconnects;
  };

  CoreEngine(ports::Store& store, const base::Clock& clock, std::uint64_t seed);

  bool takes(const core::Command& command) const;
  void add(Batch& batch, core::Effects effects) const;
  bool may_be_full(const Batch& batch) const;
  // Stores the batch, tells the sink and gives the answers; or rolls back.
  void flush(Batch& batch);
  base::Status commit(const Writes& writes);
  void note_connection(Batch& batch, const core::Command& command) const;
  void roll_back(const base::Error& cause, const Batch& batch);
  void keep_connections(core::State& state, const Batch& batch) const;
  base::Error refusal() const;

  ports::Store* store_;
  const base::Clock* clock_;
  base::Prng prng_;
  EffectSink* sink_ = nullptr;
  StateObserver* observer_ = nullptr;
  core::State state_;
  std::int64_t revision_ = 0;
  bool writable_ = true;
  std::string refused_because_;
  std::optional<base::Error> failed_;
  base::TimeMs expired_at_ms_ = 0;
};

}  // namespace cotenant::server
