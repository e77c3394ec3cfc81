#include "agent/report_tracker.h"

#include <algorithm>
#include <set>

#include "codec/agent_message.h"

namespace cotenant::agent {
namespace {

// What the control plane assumes of a task that nobody has reported.
bool says_nothing(const core::TaskObservation& task) {
  if (task.pull_started_at_ms != 0) return false;
  return std::all_of(task.containers.begin(), task.containers.end(), [](const auto& container) {
    return container.status == core::ContainerStatus::kPending;
  });
}

}  // namespace

void ReportTracker::sent_all(const std::vector<core::TaskObservation>& observed, std::int64_t seq) {
  sent_.clear();
  // The desired state that answers a hello acknowledges it.
  for (const core::TaskObservation& task : observed) sent_[task.task_id] = {task, seq, true, 0};
}

std::vector<core::TaskObservation> ReportTracker::take(
    const std::vector<core::TaskObservation>& observed, std::int64_t seq, base::TimeMs now_ms,
    std::size_t bytes_max) {
  std::vector<core::TaskObservation> due;
  std::size_t bytes = 0;
  std::set<std::string> known;
  for (const core::TaskObservation& task : observed) {
    known.insert(task.task_id);
    const auto found = sent_.find(task.task_id);
    if (found == sent_.end()) {
      if (says_nothing(task)) continue;
    } else if (found->second.observation == task &&
               (found->second.acknowledged || now_ms < found->second.at_ms + resend_after_ms_)) {
      continue;
    }
    bytes += codec::encoded_bytes_at_most(task);
    if (bytes > bytes_max && !due.empty()) continue;  // with the next frame
    sent_[task.task_id] = {task, seq, false, now_ms};
    due.push_back(task);
  }
  std::erase_if(sent_, [&](const auto& entry) { return !known.contains(entry.first); });
  return due;
}

void ReportTracker::acknowledge(std::int64_t seq) {
  for (auto& [task_id, sent] : sent_) {
    if (sent.seq <= seq) sent.acknowledged = true;
  }
}

}  // namespace cotenant::agent
