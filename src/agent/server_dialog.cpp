#include "agent/server_dialog.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"

namespace cotenant::agent {

namespace log = base::log;

// That anything runs is what counts, and a few of its names.
constexpr std::size_t kRunningTold = 100;

ServerDialog::ServerDialog(AgentLogic& logic, base::TimeMs resend_after_ms, std::string boot_id,
                           std::string server)
    : logic_(logic),
      tracker_(resend_after_ms),
      boot_id_(std::move(boot_id)),
      server_(std::move(server)) {}

void ServerDialog::opened(std::int64_t epoch, core::InstanceRegistration registration,
                          std::shared_ptr<ports::WebSocket> socket) {
  codec::AgentHello hello;
  hello.boot_id = boot_id_;
  hello.epoch = epoch;
  hello.registration = std::move(registration);
  // What does not fit follows as reports, once the hello is answered.
  std::size_t bytes = 0;
  for (core::TaskObservation& task : logic_.observations()) {
    bytes += codec::encoded_bytes_at_most(task);
    if (bytes > ReportTracker::kReportBytes) break;
    hello.observed.push_back(std::move(task));
  }
  hello.running = logic_.running_tasks();
  hello.running.resize(std::min(hello.running.size(), kRunningTold));
  epoch_ = epoch;
  seq_ = 0;
  revision_ = 0;
  synced_ = false;
  parts_.reset();
  socket_ = std::move(socket);
  tracker_.sent_all(hello.observed, seq_);
  socket_->send(codec::encode(codec::AgentMessage(std::move(hello))));
}

ServerDialog::Heard ServerDialog::received(std::int64_t epoch,
                                           base::Result<codec::ServerMessage> message) {
  if (epoch != epoch_ || socket_ == nullptr) return Heard::kNothing;
  if (!message) {
    protest(message.error().message);
  } else if (auto* change = std::get_if<codec::ServerDesired>(&*message)) {
    return desired(std::move(*change));
  } else if (const auto* ack = std::get_if<codec::ServerAck>(&*message)) {
    tracker_.acknowledge(ack->seq);
  } else if (auto* stream = std::get_if<codec::ServerStream>(&*message)) {
    streams_.push_back(std::move(*stream));
  } else if (const auto* refused = std::get_if<codec::ServerRefused>(&*message)) {
    log::error("agent: {} refuses this instance: {}", server_, refused->reason);
    if (!refused->stop_containers) return Heard::kRefused;
    logic_.desire_all({});
    return refused->leave ? Heard::kDismissed : Heard::kStopFirst;
  }
  return Heard::kNothing;
}

ServerDialog::Heard ServerDialog::desired(codec::ServerDesired message) {
  if (message.revision <= revision_) return Heard::kNothing;  // it came twice
  // Without everything before it, a change or a further part says nothing certain.
  const bool is_next = message.revision == revision_ + 1;
  if (!is_next || (!message.full && (!synced_ || parts_))) {
    protest(fmt::format("desired state {} came after {}", message.revision, revision_));
    return Heard::kNothing;
  }
  revision_ = message.revision;
  if (!message.full) {
    logic_.desire_changes(std::move(message.tasks), message.removed);
    return Heard::kNothing;
  }
  if (!parts_) parts_.emplace();
  parts_->insert(parts_->end(), std::make_move_iterator(message.tasks.begin()),
                 std::make_move_iterator(message.tasks.end()));
  if (message.more) return Heard::kNothing;
  logic_.desire_all(std::move(*parts_));
  parts_.reset();
  return std::exchange(synced_, true) ? Heard::kNothing : Heard::kAccepted;
}

void ServerDialog::protest(const std::string& reason) {
  log::error("agent: {} sent what the agent protocol does not allow: {}", server_, reason);
  hang_up(reason);
}

void ServerDialog::hang_up(const std::string& reason) {
  if (socket_ != nullptr) socket_->close(reason);
}

bool ServerDialog::closed(std::int64_t epoch) {
  if (epoch != epoch_) return false;
  socket_.reset();
  synced_ = false;
  return true;
}

void ServerDialog::report(base::TimeMs now_ms) {
  if (socket_ == nullptr || !synced_) return;
  const std::vector<core::TaskObservation> observed = logic_.observations();
  while (true) {
    std::vector<core::TaskObservation> due = tracker_.take(observed, seq_ + 1, now_ms);
    if (due.empty()) return;
    socket_->send(codec::encode(codec::AgentMessage(codec::AgentObserved{++seq_, std::move(due)})));
  }
}

}  // namespace cotenant::agent
