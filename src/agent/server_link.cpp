#include "agent/server_link.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace cotenant::agent {

namespace log = base::log;
using std::chrono::milliseconds;

struct ServerLink::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  bool refused = false;
  int failures = 0;
  std::int64_t closed_epoch = -1;  // the newest connection that has ended
};

class ServerLink::Listener final : public ports::WebSocketListener {
 public:
  Listener(std::shared_ptr<Shared> shared, std::shared_ptr<Handler> handler, std::int64_t epoch)
      : shared_(std::move(shared)), handler_(std::move(handler)), epoch_(epoch) {}

  void on_open(std::shared_ptr<ports::WebSocket> socket) override {
    handler_->opened(epoch_, std::move(socket));
  }
  void on_text(std::string_view text) override { handler_->received(epoch_, text); }
  void on_closed(std::string_view reason) override {
    handler_->closed(epoch_, reason);
    const std::lock_guard lock(shared_->mutex);
    shared_->closed_epoch = std::max(shared_->closed_epoch, epoch_);
    shared_->wake.notify_all();
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<Handler> handler_;
  const std::int64_t epoch_;
};

ServerLink::ServerLink(LinkOptions options, Connector connect, std::shared_ptr<Handler> handler,
                       std::uint64_t seed)
    : options_(std::move(options)),
      connect_(std::move(connect)),
      handler_(std::move(handler)),
      shared_(std::make_shared<Shared>()),
      prng_(seed) {}

ServerLink::~ServerLink() {
  stop();
}

base::Status ServerLink::start() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return base::fail(base::ErrorCode::kUnavailable,
                      std::string("agent: cannot start a thread: ") + error.what());
  }
  return {};
}

void ServerLink::stop() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
    shared_->wake.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void ServerLink::note_accepted() {
  const std::lock_guard lock(shared_->mutex);
  shared_->failures = 0;
  shared_->refused = false;
}

void ServerLink::note_refused() {
  const std::lock_guard lock(shared_->mutex);
  shared_->refused = true;
}

bool ServerLink::pause(milliseconds delay) {
  std::unique_lock lock(shared_->mutex);
  return shared_->wake.wait_for(lock, delay, [&] { return shared_->stopping; });
}

// Doubled each time, and between a half and all of that, so that a thousand agents do not come back
// at once after the control plane was restarted.
milliseconds ServerLink::next_delay() {
  milliseconds full = options_.retry_max;
  {
    const std::lock_guard lock(shared_->mutex);
    if (std::exchange(shared_->refused, false)) {
      full = options_.refused_retry;
    } else {
      full = std::min(options_.retry_max, options_.retry_min * (1 << shared_->failures));
      shared_->failures = std::min(shared_->failures + 1, 16);
    }
  }
  const auto half = static_cast<std::uint64_t>(full.count() / 2);
  return full - milliseconds(prng_.next() % (half + 1));
}

void ServerLink::run() {
  do {
    attempt();
  } while (!pause(next_delay()));
}

void ServerLink::attempt() {
  const base::Result<std::int64_t> epoch = handler_->prepare();
  base::Result<std::shared_ptr<ports::WebSocket>> socket =
      epoch ? connect_(std::make_shared<Listener>(shared_, handler_, *epoch))
            : base::Result<std::shared_ptr<ports::WebSocket>>(base::fail(epoch.error()));
  if (!socket) {
    if (socket.error().message != last_error_) {
      log::warn("agent: no connection to {}: {}; trying again until there is one", options_.server,
                socket.error().message);
      last_error_ = socket.error().message;
    }
    return;
  }
  last_error_.clear();
  std::unique_lock lock(shared_->mutex);
  shared_->wake.wait(lock, [&] { return shared_->stopping || shared_->closed_epoch >= *epoch; });
  const bool stopping = shared_->stopping;
  lock.unlock();
  if (stopping) (*socket)->close("the agent stops");
}

}  // namespace cotenant::agent
