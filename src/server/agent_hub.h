// The control plane's end of the agent connections.
//
// Each connection is an AgentSession: hello joins the instance, observed reports are stored and
// then acknowledged, and what the instance should run is sent: everything after hello, then only
// what changed.
// Threads: sessions are called by the HTTP server's threads and hand everything to the core loop;
// the table of sessions belongs to the loop's thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "codec/agent_message.h"
#include "ports/http.h"
#include "server/command_queue.h"

namespace cotenant::server {

class AgentSession;

class AgentHub final : public EffectSink {
 public:
  explicit AgentHub(CommandQueue& loop) : loop_(loop) {}

  // For a WebSocket at /agent/v1 whose agent may speak for this instance only; empty: for any.
  std::shared_ptr<ports::WebSocketListener> accept(const std::string& instance_id = "");

  // How many instances are connected. Any thread.
  std::size_t connected() const { return connected_; }

  // On the loop's thread. False: that agent is not connected.
  bool ask(const std::string& instance_id, const codec::ServerStream& stream);
  // On the loop's thread.
  void on_effects(const core::State& state, const core::Effects& effects) override;
  void attach(const core::State& state, const std::string& instance_id,
              std::shared_ptr<AgentSession> session);
  // Ends the connection of this instance's agent, if there is one.
  void close(const std::string& instance_id, const std::string& reason);
  // False: it was not attached (its hello was refused, or a newer connection has taken its place).
  bool detach(const std::string& instance_id, const AgentSession* session);

 private:
  CommandQueue& loop_;
  std::map<std::string, std::shared_ptr<AgentSession>> sessions_;
  std::atomic<std::size_t> connected_{0};
};

}  // namespace cotenant::server
