// A few threads for blocking calls. Threads are made when all others are busy, up to the bound;
// beyond it jobs wait in order. Any thread posts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cotenant::agent {

class WorkerPool {
 public:
  explicit WorkerPool(std::size_t max_threads) : max_threads_(max_threads) {}
  // Waits for the jobs that run; those that wait are dropped.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // After shut_down(), and where the system has no thread left at all, the job is dropped.
  void post(std::function<void()> job);
  // Takes no more jobs and drops those that wait. True when none runs any more within `grace`.
  bool shut_down(std::chrono::milliseconds grace);

 private:
  void work();

  const std::size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable calm_;
  std::deque<std::function<void()>> jobs_;
  std::vector<std::thread> threads_;
  std::size_t busy_ = 0;
  bool closed_ = false;
};

}  // namespace cotenant::agent
