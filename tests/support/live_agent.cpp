#include "live_agent.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "codec/agent_message.h"

namespace cotenant::tests {

core::InstanceRegistration live_registration(const std::string& id, int gpus) {
  core::InstanceRegistration registration;
  registration.id = id;
  registration.cluster = "default";
  registration.cpu_units = 64 * 1024;
  registration.memory_mib = 1024 * 1024;
  registration.agent_version = "live";
  registration.gpu_simulated = true;
  registration.attributes.emplace(core::kSharingAttribute, "");
  for (int gpu = 0; gpu < gpus; ++gpu) {
    registration.gpus.push_back({fmt::format("GPU-{}-{}", id, gpu), "NVIDIA H100", 81559, 48});
  }
  return registration;
}

class LiveAgent::Listener final : public ports::WebSocketListener {
 public:
  Listener(core::InstanceRegistration registration, std::int64_t epoch)
      : registration_(std::move(registration)), epoch_(epoch) {}

  void on_open(std::shared_ptr<ports::WebSocket> socket) override {
    {
      const std::lock_guard lock(mutex_);
      socket_ = socket;
    }
    codec::AgentHello hello;
    hello.boot_id = "boot";
    hello.epoch = epoch_;
    hello.registration = registration_;
    socket->send(codec::encode(codec::AgentMessage(std::move(hello))));
  }

  void on_text(std::string_view text) override {
    auto message = codec::decode_server_message(text);
    if (!message) return close("not understood");
    const auto* desired = std::get_if<codec::ServerDesired>(&*message);
    if (desired == nullptr) return;
    if (desired->full) accepted = true;
    codec::AgentObserved observed;
    for (const core::DesiredTask& task : desired->tasks) {
      core::TaskObservation seen{task.task_id, {}};
      const auto status =
          task.stop ? core::ContainerStatus::kStopped : core::ContainerStatus::kRunning;
      for (const core::DesiredContainer& container : task.containers) {
        core::ContainerObservation each;
        each.name = container.definition.name;
        each.status = status;
        if (task.stop) each.exit_code = 143;
        seen.containers.push_back(std::move(each));
      }
      ++(task.stop ? stopped : started);
      observed.tasks.push_back(std::move(seen));
    }
    if (observed.tasks.empty()) return;
    observed.seq = ++seq_;
    if (const auto socket = this->socket()) {
      socket->send(codec::encode(codec::AgentMessage(std::move(observed))));
    }
  }

  void on_closed(std::string_view) override {
    ended = true;
    const std::lock_guard lock(mutex_);
    socket_.reset();
  }

  void close(const std::string& reason) {
    if (const auto socket = this->socket()) socket->close(reason);
  }

  std::atomic<bool> accepted{false};
  std::atomic<bool> ended{false};
  std::atomic<std::int64_t> started{0};
  std::atomic<std::int64_t> stopped{0};

 private:
  std::shared_ptr<ports::WebSocket> socket() {
    const std::lock_guard lock(mutex_);
    return socket_;
  }

  const core::InstanceRegistration registration_;
  const std::int64_t epoch_;
  std::int64_t seq_ = 0;
  std::mutex mutex_;
  std::shared_ptr<ports::WebSocket> socket_;
};

LiveAgent::LiveAgent(std::shared_ptr<Listener> listener) : listener_(std::move(listener)) {}

LiveAgent::~LiveAgent() {
  listener_->close("the agent goes");
}

base::Result<std::unique_ptr<LiveAgent>> LiveAgent::connect(net::WebSocketClient& client,
                                                            const std::string& endpoint,
                                                            core::InstanceRegistration registration,
                                                            std::int64_t epoch) {
  // What lets it in: its id, and a key that is the first one's to come with that id.
  const std::vector<ports::HttpHeader> headers = {
      {"X-Cotenant-Instance", registration.id}, {"X-Cotenant-Instance-Key", std::string(48, 'k')}};
  auto listener = std::make_shared<Listener>(std::move(registration), epoch);
  auto socket = client.connect(endpoint, "/agent/v1", listener, {}, headers);
  if (!socket) return base::fail(socket.error());
  return std::unique_ptr<LiveAgent>(new LiveAgent(std::move(listener)));
}

bool LiveAgent::connected() const {
  return listener_->accepted && !listener_->ended;
}
bool LiveAgent::closed() const {
  return listener_->ended;
}
std::int64_t LiveAgent::started() const {
  return listener_->started;
}
std::int64_t LiveAgent::stopped() const {
  return listener_->stopped;
}

}  // namespace cotenant::tests
