#include "agent/worker_pool.h"

#include <system_error>
#include <utility>

#include "base/log.h"

namespace cotenant::agent {

WorkerPool::~WorkerPool() {
  shut_down(std::chrono::milliseconds(0));
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  jobs_.push_back(std::move(job));
  if (busy_ + jobs_.size() > threads_.size() && threads_.size() < max_threads_) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      base::log::error("agent: cannot start a thread ({}); {} work on", error.what(),
                       threads_.size());
      if (threads_.empty()) jobs_.clear();
    }
  }
  wake_.notify_one();
}

bool WorkerPool::shut_down(std::chrono::milliseconds grace) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  jobs_.clear();
  wake_.notify_all();
  return calm_.wait_for(lock, grace, [&] { return busy_ == 0; });
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return closed_ || !jobs_.empty(); });
    if (closed_) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    ++busy_;
    lock.unlock();
    job();
    lock.lock();
    --busy_;
    calm_.notify_all();
  }
}

}  // namespace cotenant::agent
