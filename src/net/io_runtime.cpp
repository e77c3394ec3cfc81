#include "net/io_runtime.h"

#include <exception>

#include "base/log.h"

namespace cotenant::net {

bool SessionRegistry::add(std::shared_ptr<Session> session) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  const Session* const key = session.get();
  sessions_.emplace(key, std::move(session));
  return true;
}

void SessionRegistry::remove(const Session* session) {
  std::shared_ptr<Session> removed;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  removed = std::move(found->second);
  sessions_.erase(found);
}

std::size_t SessionRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

void SessionRegistry::shut_down_all() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  for (const auto& [key, session] : sessions_) {
    asio::post(session->executor(), [held = session] { held->shut_down(); });
  }
}

void SessionRegistry::close() {
  std::unordered_map<const Session*, std::shared_ptr<Session>> leftover;
  const std::lock_guard lock(mutex_);
  open_ = false;
  leftover.swap(sessions_);
}

IoRuntime::IoRuntime(int threads) : io_(threads), work_(asio::make_work_guard(io_)) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {
    stop();
    throw;
  }
}

IoRuntime::~IoRuntime() {
  stop();
}

void IoRuntime::run() {
  // Sessions catch what the application throws; what still arrives here (no memory) costs one
  // connection, not the process.
  for (;;) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      base::log::error("net: unexpected exception in an I/O thread: {}", error.what());
    }
  }
}

void IoRuntime::stop() {
  const std::lock_guard lock(stop_mutex_);
  if (threads_.empty()) return;
  sessions_->shut_down_all();
  work_.reset();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  sessions_->close();
}

}  // namespace cotenant::net
