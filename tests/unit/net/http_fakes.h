// Handlers made of lambdas, and listeners that write down what they were told, for the net tests.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ports/http.h"
#include "raw_socket.h"

namespace cotenant::net_test {

// Waits until `done` holds; `change` is notified by whoever changes what it looks at.
class Monitor {
 public:
  template <class Change>
  void update(Change change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  template <class Condition>
  bool wait(Condition done) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, done);
  }
  template <class Read>
  auto read(Read read) {
    const std::lock_guard lock(mutex_);
    return read();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

class FunctionHandler final : public ports::HttpHandler {
 public:
  using Handle = std::function<void(ports::HttpRequest, ports::HttpResponder)>;
  using Upgrade =
      std::function<std::shared_ptr<ports::WebSocketListener>(const ports::HttpRequest&)>;

  explicit FunctionHandler(Handle handle, Upgrade upgrade = nullptr)
      : handle_(std::move(handle)), upgrade_(std::move(upgrade)) {}

  void handle(ports::HttpRequest request, ports::HttpResponder respond) override {
    handle_(std::move(request), std::move(respond));
  }
  // No listener: 404.
  void upgrade(ports::HttpRequest request, ports::HttpUpgradeResponder respond) override {
    auto listener = upgrade_ ? upgrade_(request) : nullptr;
    if (listener) return respond(std::move(listener));
    respond(tl::unexpected<ports::HttpResponse>(
        ports::HttpResponse{404, {}, "no WebSocket at this path", nullptr}));
  }

 private:
  const Handle handle_;
  const Upgrade upgrade_;
};

// Writes down its calls, checks their order, and can answer each text.
class RecordingListener final : public ports::WebSocketListener {
 public:
  using OnText = std::function<void(ports::WebSocket&, std::string_view)>;

  explicit RecordingListener(OnText on_text = nullptr) : on_text_(std::move(on_text)) {}

  void on_open(std::shared_ptr<ports::WebSocket> socket) override;
  void on_text(std::string_view text) override;
  void on_closed(std::string_view reason) override;

  bool wait_open();
  bool wait_texts(std::size_t count);
  bool wait_closed();
  std::vector<std::string> texts();
  std::string reason();
  int closed_count();
  // A call overlapped another, or came before on_open or after on_closed.
  bool out_of_order();
  std::shared_ptr<ports::WebSocket> socket();

 private:
  void enter(bool allowed);
  void leave();

  const OnText on_text_;
  Monitor monitor_;
  std::shared_ptr<ports::WebSocket> socket_;
  std::vector<std::string> texts_;
  std::string reason_;
  bool open_ = false;
  int closed_count_ = 0;
  int inside_ = 0;
  bool out_of_order_ = false;
};

inline void RecordingListener::enter(bool allowed) {
  monitor_.update([&] {
    if (!allowed || inside_ != 0) out_of_order_ = true;
    ++inside_;
  });
}

inline void RecordingListener::leave() {
  monitor_.update([&] { --inside_; });
}

inline void RecordingListener::on_open(std::shared_ptr<ports::WebSocket> socket) {
  enter(monitor_.read([&] { return !open_ && closed_count_ == 0; }));
  monitor_.update([&] {
    open_ = true;
    socket_ = std::move(socket);
  });
  leave();
}

inline void RecordingListener::on_text(std::string_view text) {
  enter(monitor_.read([&] { return open_ && closed_count_ == 0; }));
  if (on_text_) on_text_(*socket(), text);
  monitor_.update([&] { texts_.emplace_back(text); });
  leave();
}

inline void RecordingListener::on_closed(std::string_view reason) {
  enter(monitor_.read([&] { return open_ && closed_count_ == 0; }));
  leave();
  monitor_.update([&] {
    reason_ = reason;
    ++closed_count_;
  });
}

inline bool RecordingListener::wait_open() {
  return monitor_.wait([&] { return open_; });
}
inline bool RecordingListener::wait_texts(std::size_t count) {
  return monitor_.wait([&] { return texts_.size() >= count; });
}
inline bool RecordingListener::wait_closed() {
  return monitor_.wait([&] { return closed_count_ > 0; });
}
inline std::vector<std::string> RecordingListener::texts() {
  return monitor_.read([&] { return texts_; });
}
inline std::string RecordingListener::reason() {
  return monitor_.read([&] { return reason_; });
}
inline int RecordingListener::closed_count() {
  return monitor_.read([&] { return closed_count_; });
}
inline bool RecordingListener::out_of_order() {
  return monitor_.read([&] { return out_of_order_; });
}
inline std::shared_ptr<ports::WebSocket> RecordingListener::socket() {
  return monitor_.read([&] { return socket_; });
}

}  // namespace cotenant::net_test
