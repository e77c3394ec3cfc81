// Private to net's .cpp files. A Session is one connection (or the listener) whose work runs on its
// own strand; the SessionRegistry owns the sessions of one server or client and is the only way by
// which other threads reach them.
//
// Handles that the application keeps (responders, WebSockets) may outlive the connection and the
// server. They hold the registry and a weak pointer to the session; post() does nothing once either
// is gone, so nobody touches a destroyed io_context.
#pragma once

#include <boost/asio/post.hpp>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "net/asio.h"

namespace cotenant::net {

class Session {
 public:
  virtual ~Session() = default;
  virtual asio::any_io_executor executor() = 0;
  // Runs on the strand. The session must end soon (a second or so) and then remove itself.
  virtual void shut_down() = 0;
};

// How long a WebSocket may take for its closing handshake once it must stop.
inline constexpr std::chrono::milliseconds kStopGrace{1000};

// Any thread.
class SessionRegistry {
 public:
  // False once shut_down_all() was called: the session must not start.
  bool add(std::shared_ptr<Session> session);
  void remove(const Session* session);
  std::size_t size() const;

  // Runs task(T&) on the session's strand, or drops it when the session or the io_context is gone.
  template <class T, class Task>
  void post(const std::weak_ptr<T>& session, Task task) {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    std::shared_ptr<T> target = session.lock();
    if (!target) return;
    const asio::any_io_executor executor = target->executor();
    // The target moves into the task: its destructor must not run here, under the lock.
    asio::post(executor,
               [held = std::move(target), run = std::move(task)]() mutable { run(*held); });
  }

  void shut_down_all();
  // The io_context has no more threads.
  void close();

 private:
  mutable std::mutex mutex_;
  bool open_ = true;
  bool stopping_ = false;
  std::unordered_map<const Session*, std::shared_ptr<Session>> sessions_;
};

}  // namespace cotenant::net
