// Private to net's .cpp files. An io_context with its threads and its sessions.
//
// stop() (also the destructor) asks each session to end, waits until all have and joins the
// threads. It must not be called from one of those threads, that is, not from a handler or a
// listener.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "net/session.h"

namespace cotenant::net {

class IoRuntime {
 public:
  // Throws std::system_error when the threads cannot be made.
  explicit IoRuntime(int threads);
  ~IoRuntime();
  IoRuntime(const IoRuntime&) = delete;
  IoRuntime& operator=(const IoRuntime&) = delete;

  asio::io_context& io() { return io_; }
  const std::shared_ptr<SessionRegistry>& sessions() const { return sessions_; }
  void stop();

 private:
  void run();

  std::shared_ptr<SessionRegistry> sessions_ = std::make_shared<SessionRegistry>();
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::mutex stop_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace cotenant::net
