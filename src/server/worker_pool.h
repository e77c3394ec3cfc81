// A few threads and a bounded queue for work that may block: API calls wait here for the core loop,
// and their JSON is parsed and encoded here.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cotenant::server {

class WorkerPool {
 public:
  WorkerPool(std::size_t threads, std::size_t queue_max);
  // Runs what is queued, then joins.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full: the job will not run.
  bool post(std::function<void()> job);

 private:
  void run();

  const std::size_t queue_max_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace cotenant::server
