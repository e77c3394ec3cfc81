// Private to net's .cpp files. The HTTP connections of one listener, and which of them makes room
// for a new one when there are too many.
//
// A connection that has a request in work is never cut. One that waits for its next request may be
// closed at any time (RFC 9112, 9.5), and one whose request has been arriving for more than
// kReadingGrace is slow or means harm; so whoever holds thousands of silent connections keeps nobody
// out. WebSockets are not in this table: they have a limit of their own. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "net/asio.h"

namespace cotenant::net {

class HttpSession;

enum class Activity { kWaiting, kReading, kBusy };

inline constexpr std::chrono::milliseconds kReadingGrace{2000};

class ConnectionTable {
 public:
  using TimePoint = SteadyClock::time_point;

  // The connection is in this state from now on; unknown ones are added.
  void note(const HttpSession* key, const std::weak_ptr<HttpSession>& session, Activity activity,
            TimePoint now);
  void remove(const HttpSession* key);
  std::size_t size() const;

  // Takes the connection out that makes room; null when all are at work.
  std::weak_ptr<HttpSession> take_victim(TimePoint now);

 private:
  struct Entry {
    std::weak_ptr<HttpSession> session;
    Activity activity = Activity::kWaiting;
    TimePoint since;
  };

  mutable std::mutex mutex_;
  std::unordered_map<const HttpSession*, Entry> entries_;
};

}  // namespace cotenant::net
