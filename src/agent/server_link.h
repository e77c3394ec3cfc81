// The agent's one connection to its control plane: makes it, makes it again after it broke, with
// back-off and jitter. Knows frames, not their meaning.
//
// One thread of its own makes the connections; the calls of Handler come from it and from the
// WebSocket's thread, never two at once for one connection, and may block (then the socket is not
// read). Each attempt has an epoch, which also tells late calls of an old connection from those of
// the present one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/prng.h"
#include "base/result.h"
#include "ports/http.h"

namespace cotenant::agent {

// Opens a WebSocket at the control plane's GET /agent/v1 (net::WebSocketClient, bound to its
// endpoint).
using Connector = std::function<base::Result<std::shared_ptr<ports::WebSocket>>(
    std::shared_ptr<ports::WebSocketListener>)>;

struct LinkOptions {
  std::string server;  // for log lines
  std::chrono::milliseconds retry_min{200};
  std::chrono::milliseconds retry_max{5000};
  std::chrono::milliseconds refused_retry{30000};
};

class ServerLink {
 public:
  // Shared with sockets that may outlive the link.
  class Handler {
   public:
    virtual ~Handler() = default;
    // Before each attempt; its epoch. An error puts the attempt off.
    virtual base::Result<std::int64_t> prepare() = 0;
    virtual void opened(std::int64_t epoch, std::shared_ptr<ports::WebSocket> socket) = 0;
    virtual void received(std::int64_t epoch, std::string_view text) = 0;
    virtual void closed(std::int64_t epoch, std::string_view reason) = 0;
  };

  ServerLink(LinkOptions options, Connector connect, std::shared_ptr<Handler> handler,
             std::uint64_t seed);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  // Errors: kUnavailable (no thread).
  base::Status start();
  // Closes the connection and waits for the thread (at most as long as one attempt takes).
  void stop();

  // Any thread: what the control plane made of us. The next attempt comes soon, or late.
  void note_accepted();
  void note_refused();

 private:
  struct Shared;
  class Listener;

  void run();
  // True when stop() was called meanwhile.
  bool pause(std::chrono::milliseconds delay);
  std::chrono::milliseconds next_delay();
  void attempt();

  const LinkOptions options_;
  const Connector connect_;
  const std::shared_ptr<Handler> handler_;
  const std::shared_ptr<Shared> shared_;
  base::Prng prng_;
  std::string last_error_;
  std::thread thread_;
};

}  // namespace cotenant::agent
