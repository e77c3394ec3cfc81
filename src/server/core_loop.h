// The one thread that owns the core's state, and the bounded queue in front of it.
//
// Any thread may call. Commands that wait are taken as one batch, which costs one sync of the disk; reads
// run between batches and see only what is stored. A full queue answers ThrottlingException.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "base/result.h"
#include "server/command_queue.h"
#include "server/core_engine.h"

namespace cotenant::server {

class CoreLoop final : public CommandQueue {
 public:
  // `on_failed` is called once, on the loop's thread, when the engine has failed for good.
  CoreLoop(CoreEngine engine, std::function<void(const base::Error&)> on_failed);
  // Answers what waits, then joins.
  ~CoreLoop() override;
  CoreLoop(const CoreLoop&) = delete;
  CoreLoop& operator=(const CoreLoop&) = delete;

  // To be called before the first command.
  void set_effect_sink(EffectSink* sink) {
    const std::lock_guard lock(mutex_);
    sink_ = sink;
  }

  // To be called before the first command, too.
  void set_observer(StateObserver* observer) {
    const std::lock_guard lock(mutex_);
    observer_ = observer;
  }

  // Why writes are refused at the moment; nothing while they are not. Any thread, without waiting.
  std::optional<base::Error> trouble() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

  // `done` runs on the loop's thread.
  base::Status post(core::Command command, CommandDone done) override;
  base::Status post_always(core::Command command, CommandDone done) override;

  // Blocks until the command is durable; `view` copies what the caller needs out of the state.
  template <class T>
  base::Result<T> apply(core::Command command,
                        std::function<T(const core::Reply&, const core::State&)> view) {
    std::promise<base::Result<T>> promise;
    auto future = promise.get_future();
    const auto status = post(std::move(command),
                             [&](const base::Result<core::Reply>& reply, const core::State& state) {
                               if (reply) {
                                 promise.set_value(view(*reply, state));
                               } else {
                                 promise.set_value(base::fail(reply.error()));
                               }
                             });
    if (!status) return base::fail(status.error());
    return future.get();
  }

  // Blocks. `view` runs on the loop's thread: it copies at most a page and does not encode.
  template <class T>
  base::Result<T> read(std::function<T(const core::State&)> view) {
    std::promise<base::Result<T>> promise;
    auto future = promise.get_future();
    const auto status = post_read([&](const base::Result<const core::State*>& state) {
      if (state) {
        promise.set_value(view(**state));
      } else {
        promise.set_value(base::fail(state.error()));
      }
    });
    if (!status) return base::fail(status.error());
    return future.get();
  }

  // Like read(), for a dry run: it may change the state if it has put everything back when it returns.
  // The context is what a command would get now; its generator is a copy.
  template <class T>
  base::Result<T> what_if(std::function<T(core::State&, const core::Context&)> view) {
    return read<T>([&](const core::State&) {
      base::Prng prng = engine_.prng();
      return view(engine_.what_if_state(), core::Context{engine_.now_ms(), prng});
    });
  }

 private:
  using Read = std::function<void(const base::Result<const core::State*>&)>;

  base::Status enqueue(core::Command command, CommandDone done, bool always);
  base::Status post_read(Read read);
  base::Status refuse_if_stopping() const;
  base::Status refuse_if_full() const;
  void run();
  void gather(std::unique_lock<std::mutex>& lock);
  void report_failure();

  CoreEngine engine_;
  std::function<void(const base::Error&)> on_failed_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  EffectSink* sink_ = nullptr;
  StateObserver* observer_ = nullptr;
  std::optional<base::Error> trouble_;
  std::deque<PendingCommand> commands_;
  std::deque<Read> reads_;
  std::size_t wanted_ = 1;  // so many commands are worth waking up for
  bool stopping_ = false;
  // Of the loop's thread.
  std::size_t last_batch_ = 0;  // commands
  std::chrono::steady_clock::duration last_run_{};
  std::thread thread_;
};

}  // namespace cotenant::server
