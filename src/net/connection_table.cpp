#include "net/connection_table.h"

#include <utility>

namespace cotenant::net {

void ConnectionTable::note(const HttpSession* key, const std::weak_ptr<HttpSession>& session,
                           Activity activity, TimePoint now) {
  const std::lock_guard lock(mutex_);
  entries_[key] = {session, activity, now};
}

void ConnectionTable::remove(const HttpSession* key) {
  const std::lock_guard lock(mutex_);
  entries_.erase(key);
}

std::size_t ConnectionTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::weak_ptr<HttpSession> ConnectionTable::take_victim(TimePoint now) {
  const std::lock_guard lock(mutex_);
  auto victim = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const auto& [session, activity, since] = entry->second;
    if (activity == Activity::kBusy) continue;
    if (activity == Activity::kReading && now - since < kReadingGrace) continue;
    const bool better =
        victim == entries_.end() ||
        std::pair(activity, since) < std::pair(victim->second.activity, victim->second.since);
    if (better) victim = entry;
  }
  if (victim == entries_.end()) return {};
  std::weak_ptr<HttpSession> session = std::move(victim->second.session);
  entries_.erase(victim);
  return session;
}

}  // namespace cotenant::net
