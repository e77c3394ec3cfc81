#include "server/core_loop.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <variant>
#include <vector>

namespace cotenant::server {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTick{1};

}  // namespace

CoreLoop::CoreLoop(CoreEngine engine, std::function<void(const base::Error&)> on_failed)
    : engine_(std::move(engine)), on_failed_(std::move(on_failed)), thread_([this] { run(); }) {}

CoreLoop::~CoreLoop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

base::Status CoreLoop::refuse_if_stopping() const {
  if (!stopping_) return {};
  return base::fail(base::ErrorCode::kServer, "the control plane is shutting down");
}

base::Status CoreLoop::refuse_if_full() const {
  if (auto status = refuse_if_stopping(); !status) return status;
  if (commands_.size() + reads_.size() < base::limits::kQueuedRequests) return {};
  return base::fail(base::ErrorCode::kThrottling,
                    "too many requests are waiting; try again in a moment");
}

base::Status CoreLoop::post(core::Command command, CommandDone done) {
  return enqueue(std::move(command), std::move(done), false);
}

base::Status CoreLoop::post_always(core::Command command, CommandDone done) {
  return enqueue(std::move(command), std::move(done), true);
}

base::Status CoreLoop::enqueue(core::Command command, CommandDone done, bool always) {
  {
    const std::lock_guard lock(mutex_);
    if (auto status = always ? refuse_if_stopping() : refuse_if_full(); !status) return status;
    commands_.push_back({std::move(command), std::move(done)});
  }
  wake_.notify_one();
  return {};
}

base::Status CoreLoop::post_read(Read read) {
  {
    const std::lock_guard lock(mutex_);
    if (auto status = refuse_if_full(); !status) return status;
    reads_.push_back(std::move(read));
  }
  wake_.notify_one();
  return {};
}

void CoreLoop::run() {
  auto next_tick = SteadyClock::now() + kTick;
  StateObserver* observing = nullptr;
  for (;;) {
    std::vector<PendingCommand> batch;
    std::deque<Read> reads;
    StateObserver* observer = nullptr;
    bool stopping = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_until(lock, next_tick,
                       [&] { return stopping_ || !commands_.empty() || !reads_.empty(); });
      engine_.set_effect_sink(sink_);
      observer = observer_;
      const auto count =
          static_cast<std::ptrdiff_t>(std::min(commands_.size(), base::limits::kBatchCommands));
      batch.assign(std::make_move_iterator(commands_.begin()),
                   std::make_move_iterator(commands_.begin() + count));
      commands_.erase(commands_.begin(), commands_.begin() + count);
      reads.swap(reads_);
      stopping = stopping_ && commands_.empty();
    }
    if (observer != observing) engine_.set_observer(observing = observer);
    if (!batch.empty()) engine_.run(std::move(batch));
    // After a failure the state may hold what was never stored: nobody may see it.
    for (const Read& read : reads) {
      if (engine_.failed()) {
        read(base::fail(*engine_.failed()));
      } else {
        read(&engine_.state());
      }
    }
    if (SteadyClock::now() >= next_tick) {
      engine_.tick();
      next_tick = SteadyClock::now() + kTick;
    }
    {
      const std::lock_guard lock(mutex_);
      trouble_ = engine_.trouble();
    }
    report_failure();
    if (stopping) return;
  }
}

void CoreLoop::report_failure() {
  if (!engine_.failed() || !on_failed_) return;
  on_failed_(*engine_.failed());
  on_failed_ = nullptr;
}

}  // namespace cotenant::server
