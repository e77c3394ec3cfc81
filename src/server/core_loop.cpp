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
// Waiting for company is worth a part of what a batch takes, and never more than this.
constexpr int kGatherPart = 4;
constexpr std::chrono::milliseconds kGatherMax{1};

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
  bool enough = false;
  {
    const std::lock_guard lock(mutex_);
    if (auto status = always ? refuse_if_stopping() : refuse_if_full(); !status) return status;
    commands_.push_back({std::move(command), std::move(done)});
    enough = commands_.size() >= wanted_;
  }
  if (enough) wake_.notify_one();
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

// Callers that were answered together ask again nearly together. Without this the first of them has a
// sync of the disk to itself, and all others wait for it and the next.
void CoreLoop::gather(std::unique_lock<std::mutex>& lock) {
  const auto full = [&] { return stopping_ || !reads_.empty() || commands_.size() >= last_batch_; };
  if (commands_.empty() || full()) return;
  wanted_ = last_batch_;
  wake_.wait_for(lock, std::min<SteadyClock::duration>(last_run_ / kGatherPart, kGatherMax), full);
  wanted_ = 1;
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
      gather(lock);
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
    if (!batch.empty()) {
      last_batch_ = batch.size();
      const auto began = SteadyClock::now();
      engine_.run(std::move(batch));
      last_run_ = SteadyClock::now() - began;
    }
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
