// One connection between an agent and the control plane: two ends, frames on their way, faults.
//
// Frames arrive in order unless the faults say otherwise. After a lost frame the connection is cut
// within the time in which a dead peer is noticed (ping every 5 s, dead after 15 s). What either
// end hears comes through the scheduler, never out of a call of its own. An end whose process was
// killed hears nothing any more.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ports/web_socket.h"
#include "sim/dice.h"
#include "sim/faults.h"
#include "sim/journal.h"
#include "sim/scheduler.h"

namespace cotenant::sim {

struct Env {
  Scheduler& scheduler;
  Dice& dice;
  const Faults& faults;
  Journal& journal;
};

class Wire final : public std::enable_shared_from_this<Wire> {
 public:
  enum Side { kAgent = 0, kPlane = 1 };

  Wire(Env& env, std::string name) : env_(env), name_(std::move(name)) {}

  // Both listeners hear on_open() now.
  void open(std::shared_ptr<ports::WebSocketListener> agent,
            std::shared_ptr<ports::WebSocketListener> plane);
  // The network between them is gone; both ends notice, each in its own time. What is on its way may
  // still arrive (it lay in a buffer of the other end) or not.
  void cut();
  // The process at this end was killed; the other end notices.
  void kill(Side side);
  // Its process has not been told of the end.
  bool is_open(Side side) const { return ends_[side].alive; }

 private:
  class Socket;
  struct End {
    std::shared_ptr<ports::WebSocketListener> listener;
    bool alive = false;  // has not been told of the end
    base::TimeMs newest_arrival_ms = 0;
  };

  void send(Side from, std::string text);
  void close(Side from, const std::string& reason);
  void deliver(Side to, base::TimeMs delay_ms, const std::string& text);
  void end(Side side, base::TimeMs delay_ms, std::string reason);

  Env& env_;
  const std::string name_;
  End ends_[2];
  bool carries_ = true;            // nothing that is sent arrives once it is cut
  bool in_flight_arrives_ = true;  // what was sent before
  bool closed_[2] = {false, false};
};

}  // namespace cotenant::sim
