#include "server/agent_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.h"
#include "codec/agent_message.h"

namespace cotenant::server {
namespace {

// Reports that may wait for the answer to their connection's hello.
constexpr std::size_t kWaitingReports = 64;
// Desired states that an agent has not taken. All that one instance runs is less.
constexpr std::size_t kOutgoingBytesMax = std::size_t{256} * 1024 * 1024;

// Those of which a container runs or may come to run.
std::vector<std::string> running_tasks(const codec::AgentHello& hello) {
  std::vector<std::string> ids = hello.running;
  for (const core::TaskObservation& task : hello.observed) {
    const bool runs = std::any_of(task.containers.begin(), task.containers.end(),
                                  [](const core::ContainerObservation& container) {
                                    return container.status == core::ContainerStatus::kRunning;
                                  });
    if (runs && std::find(ids.begin(), ids.end(), task.task_id) == ids.end()) {
      ids.push_back(task.task_id);
    }
  }
  return ids;
}

}  // namespace

class AgentSession final : public ports::WebSocketListener,
                           public std::enable_shared_from_this<AgentSession> {
 public:
  AgentSession(CommandQueue& loop, AgentHub& hub, std::string allowed_instance)
      : loop_(loop), hub_(hub), allowed_instance_(std::move(allowed_instance)) {}

  void on_open(std::shared_ptr<ports::WebSocket> socket) override {
    const std::lock_guard lock(mutex_);
    socket_ = std::move(socket);
  }

  void on_text(std::string_view text) override {
    auto message = codec::decode_agent_message(text);
    if (!message) return close(message.error().message);
    if (auto* hello = std::get_if<codec::AgentHello>(&*message)) {
      on_hello(std::move(*hello));
    } else {
      on_observed(std::move(std::get<codec::AgentObserved>(*message)));
    }
  }

  void on_closed(std::string_view reason) override {
    {
      const std::lock_guard lock(mutex_);
      socket_.reset();  // which holds its listener, us
      waiting_.clear();
      outgoing_.clear();
    }
    if (instance_id_.empty()) return;
    base::log::info("agent of instance {} disconnected: {}", instance_id_, reason);
    // Behind the hello in the loop's queue, so that its outcome is known: a refused one must not
    // disconnect the agent that is there.
    auto self = shared_from_this();
    const auto status = loop_.post_always(
        core::ObserveTasks{instance_id_, {}, epoch_},
        [self](const base::Result<core::Reply>&, const core::State&) { self->disconnect(); });
    if (!status) base::log::warn("instance {}: {}", instance_id_, status.error().message);
  }

  void send(const codec::ServerMessage& message) {
    if (auto socket = this->socket()) socket->send(codec::encode(message));
  }

  // On the loop's thread. Numbers the frames.
  void send(codec::ServerDesired desired) {
    desired.revision = revision_ + 1;
    std::vector<std::string> frames = codec::encode_in_parts(desired);
    revision_ += static_cast<std::int64_t>(frames.size());
    bool too_slow = false;
    {
      const std::lock_guard lock(mutex_);
      if (!socket_) return;
      for (std::string& frame : frames) {
        outgoing_bytes_ += frame.size();
        outgoing_.push_back(std::move(frame));
      }
      too_slow = outgoing_bytes_ > kOutgoingBytesMax;
      flush();
    }
    if (too_slow) close("the agent does not read what it should run; connect again");
  }

  void on_drained() override {
    const std::lock_guard lock(mutex_);
    flush();
  }

  void close(std::string reason) {
    if (auto socket = this->socket()) socket->close(std::move(reason));
  }

  // The instance was deregistered. On the loop's thread.
  void dismiss() {
    refuse(
        {"the instance was deregistered; start the agent anew to register it again", true, true});
  }

 private:
  std::shared_ptr<ports::WebSocket> socket() {
    const std::lock_guard lock(mutex_);
    return socket_;
  }

  // With mutex_ held. A large state goes out as fast as the agent takes it.
  void flush() {
    while (socket_ && !outgoing_.empty() &&
           socket_->queued_bytes() < ports::kStreamHighWaterBytes) {
      outgoing_bytes_ -= outgoing_.front().size();
      socket_->send(std::move(outgoing_.front()));
      outgoing_.pop_front();
    }
  }

  void on_hello(codec::AgentHello hello) {
    if (!instance_id_.empty()) return close("hello was already said on this connection");
    if (hello.protocol != codec::kAgentProtocolVersion) {
      return refuse(
          {fmt::format("agent protocol {} is not {}; use agents and control planes of the "
                       "same version",
                       hello.protocol, codec::kAgentProtocolVersion)});
    }
    if (!allowed_instance_.empty() && hello.registration.id != allowed_instance_) {
      return refuse({fmt::format("hello is instance {}'s, but this connection was let in for {}",
                                 hello.registration.id.substr(0, 64), allowed_instance_)});
    }
    instance_id_ = hello.registration.id;
    epoch_ = hello.epoch;
    auto self = shared_from_this();
    std::vector<std::string> running = running_tasks(hello);
    core::ConnectInstance command{std::move(hello.registration), epoch_, std::move(running)};
    const auto status = loop_.post(std::move(command),
                                   [self, id = instance_id_](const base::Result<core::Reply>& reply,
                                                             const core::State& state) {
                                     if (!reply) return self->refuse({reply.error().message});
                                     const auto* stop = std::get_if<core::ConnectReply>(&*reply);
                                     if (stop != nullptr && !stop->stop_first.empty()) {
                                       return self->refuse({stop->stop_first, true, false});
                                     }
                                     base::log::info("agent of instance {} connected", id);
                                     self->hub_.attach(state, id, self);
                                     self->accepted();
                                   });
    if (!status) return close(status.error().message);
    observe({std::move(hello.observed), std::nullopt});
  }

  void on_observed(codec::AgentObserved observed) {
    if (instance_id_.empty()) return close("the first frame must be hello");
    if (observed.seq <= seq_) return;  // it came twice; its acknowledgement is on its way
    if (observed.seq != seq_ + 1) {
      // An acknowledgement covers all before it: one of this report would tell of another as stored.
      return close(fmt::format("report {} came after report {}", observed.seq, seq_));
    }
    seq_ = observed.seq;
    observe({std::move(observed.tasks), observed.seq});
  }

  struct Report {
    std::vector<core::TaskObservation> tasks;
    std::optional<std::int64_t> seq;  // to be acknowledged when it is stored
  };

  // What an agent reports counts only once its hello has been accepted: a refused one must change
  // nothing.
  void observe(Report report) {
    base::Status status;
    {
      const std::lock_guard lock(mutex_);
      if (accepted_) {
        status = post(std::move(report));
      } else if (waiting_.size() < kWaitingReports) {
        waiting_.push_back(std::move(report));
      } else {
        status = base::fail(base::ErrorCode::kThrottling,
                            "too many reports before the answer to hello; connect again");
      }
    }
    if (!status) close(status.error().message);
  }

  // On the loop's thread.
  void accepted() {
    base::Status status;
    {
      const std::lock_guard lock(mutex_);
      accepted_ = true;
      for (Report& report : waiting_) {
        if (status) status = post(std::move(report));
      }
      waiting_.clear();
    }
    if (!status) close(status.error().message);
  }

  // Cut to what one command may touch. Not stored means not acknowledged: the connection ends, and
  // the agent says everything again.
  base::Status post(Report report) {
    auto& tasks = report.tasks;
    std::size_t at = 0;
    do {
      const std::size_t count = std::min(kTasksPerReport, tasks.size() - at);
      const auto begin = std::make_move_iterator(tasks.begin()) + static_cast<std::ptrdiff_t>(at);
      core::ObserveTasks command{
          instance_id_, {begin, begin + static_cast<std::ptrdiff_t>(count)}, epoch_};
      at += count;
      const auto seq = at == tasks.size() ? report.seq : std::nullopt;
      auto status = loop_.post(std::move(command),
                               [self = shared_from_this(), seq](
                                   const base::Result<core::Reply>& reply, const core::State&) {
                                 if (!reply) return self->close(reply.error().message);
                                 if (seq) self->send(codec::ServerAck{*seq});
                               });
      if (!status) return status;
    } while (at < tasks.size());
    return {};
  }

  // On the loop's thread.
  void disconnect() {
    if (!hub_.detach(instance_id_, this)) return;
    const auto status = loop_.post_always(core::DisconnectInstance{instance_id_, epoch_}, nullptr);
    if (!status) base::log::warn("instance {}: {}", instance_id_, status.error().message);
  }

  void refuse(codec::ServerRefused refusal) {
    base::log::warn("agent of instance {} was refused: {}", instance_id_, refusal.reason);
    send(std::move(refusal));
    close("refused");
  }

  CommandQueue& loop_;
  AgentHub& hub_;
  const std::string allowed_instance_;
  std::mutex mutex_;
  std::shared_ptr<ports::WebSocket> socket_;
  bool accepted_ = false;  // the hello
  std::vector<Report> waiting_;
  std::deque<std::string> outgoing_;  // desired states that the socket has no room for yet
  std::size_t outgoing_bytes_ = 0;
  // Of the hello; written by the socket's calls, which never overlap, before the loop hears of it.
  std::string instance_id_;
  std::int64_t epoch_ = 0;
  std::int64_t seq_ = 0;       // of the newest report; likewise
  std::int64_t revision_ = 0;  // the loop's thread
};

std::shared_ptr<ports::WebSocketListener> AgentHub::accept(const std::string& instance_id) {
  return std::make_shared<AgentSession>(loop_, *this, instance_id);
}

void AgentHub::attach(const core::State& state, const std::string& instance_id,
                      std::shared_ptr<AgentSession> session) {
  std::shared_ptr<AgentSession>& slot = sessions_[instance_id];
  if (slot && slot != session) slot->close("a newer connection of the same agent is there");
  slot = std::move(session);
  connected_ = sessions_.size();
  codec::ServerDesired desired;
  desired.full = true;
  desired.tasks = core::desired_tasks(state, instance_id);
  slot->send(std::move(desired));
}

void AgentHub::close(const std::string& instance_id, const std::string& reason) {
  const auto found = sessions_.find(instance_id);
  if (found != sessions_.end()) found->second->close(reason);
}

bool AgentHub::ask(const std::string& instance_id, const codec::ServerStream& stream) {
  const auto found = sessions_.find(instance_id);
  if (found == sessions_.end()) return false;
  found->second->send(codec::ServerMessage(stream));
  return true;
}

bool AgentHub::detach(const std::string& instance_id, const AgentSession* session) {
  const auto found = sessions_.find(instance_id);
  if (found == sessions_.end() || found->second.get() != session) return false;
  sessions_.erase(found);
  connected_ = sessions_.size();
  return true;
}

void AgentHub::on_effects(const core::State& state, const core::Effects& effects) {
  for (const auto& [instance_id, task_ids] : effects.notify_tasks) {
    const auto found = sessions_.find(instance_id);
    if (found == sessions_.end()) continue;  // the next hello brings everything
    codec::ServerDesired desired;
    for (const std::string& task_id : task_ids) {
      const auto task = state.tasks.find(task_id);
      if (task != state.tasks.end() && core::holds_reservation(task->second)) {
        desired.tasks.push_back(core::desired_task(state, task->second));
      } else {
        desired.removed.push_back(task_id);
      }
    }
    found->second->send(std::move(desired));
  }
  for (const std::string& instance_id : effects.dismissed_instances) {
    const auto found = sessions_.find(instance_id);
    if (found != sessions_.end()) found->second->dismiss();
  }
}

}  // namespace cotenant::server
