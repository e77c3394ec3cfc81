#include "sim/wire.h"

#include <algorithm>
#include <utility>

namespace cotenant::sim {
namespace {

constexpr base::TimeMs kNoticedWithinMs = 15'000;

}  // namespace

class Wire::Socket final : public ports::WebSocket {
 public:
  Socket(std::shared_ptr<Wire> wire, Side side) : wire_(std::move(wire)), side_(side) {}
  void send(std::string text) override { wire_->send(side_, std::move(text)); }
  void close(std::string reason) override { wire_->close(side_, reason); }
  void send_binary(std::string) override {}  // no part of the agent protocol
  std::size_t queued_bytes() const override { return 0; }
  void set_reading(bool) override {}

 private:
  const std::shared_ptr<Wire> wire_;
  const Side side_;
};

void Wire::open(std::shared_ptr<ports::WebSocketListener> agent,
                std::shared_ptr<ports::WebSocketListener> plane) {
  ends_[kAgent] = {std::move(agent), true, 0};
  ends_[kPlane] = {std::move(plane), true, 0};
  ends_[kPlane].listener->on_open(std::make_shared<Socket>(shared_from_this(), kPlane));
  ends_[kAgent].listener->on_open(std::make_shared<Socket>(shared_from_this(), kAgent));
}

void Wire::send(Side from, std::string text) {
  if (closed_[from] || !ends_[from].alive || !carries_) return;
  const Side to = from == kAgent ? kPlane : kAgent;
  const Faults& faults = env_.faults;
  if (env_.dice.per_mille(faults.frame_lost)) {
    env_.journal.note("{}: a frame to the {} is lost", name_, to == kPlane ? "plane" : "agent");
    env_.scheduler.after(env_.dice.between(0, kNoticedWithinMs),
                         [self = shared_from_this()] { self->cut(); });
    return;
  }
  base::TimeMs delay_ms = env_.dice.between(1, 20);
  if (env_.dice.per_mille(faults.frame_late)) delay_ms += env_.dice.between(100, 20'000);
  const base::TimeMs arrival_ms = env_.scheduler.now_ms() + delay_ms;
  if (env_.dice.per_mille(faults.frame_overtaken)) {
    // Frames sent later may arrive before it.
    delay_ms = std::max(arrival_ms, ends_[to].newest_arrival_ms) - env_.scheduler.now_ms() +
               env_.dice.between(0, 500);
  } else {
    ends_[to].newest_arrival_ms = std::max(arrival_ms, ends_[to].newest_arrival_ms);
    delay_ms = ends_[to].newest_arrival_ms - env_.scheduler.now_ms();
  }
  deliver(to, delay_ms, text);
  if (env_.dice.per_mille(faults.frame_doubled)) {
    deliver(to, delay_ms + env_.dice.between(0, 1000), text);
  }
}

void Wire::deliver(Side to, base::TimeMs delay_ms, const std::string& text) {
  env_.scheduler.after(delay_ms, [self = shared_from_this(), to, text] {
    if (!self->ends_[to].alive || self->closed_[to] || !self->in_flight_arrives_) return;
    self->env_.journal.note("{}: {} {}", self->name_, to == kPlane ? "->" : "<-", text);
    const auto listener = self->ends_[to].listener;
    listener->on_text(text);
  });
}

void Wire::close(Side from, const std::string& reason) {
  if (std::exchange(closed_[from], true) || !ends_[from].alive) return;
  const Side to = from == kAgent ? kPlane : kAgent;
  end(from, 0, reason);
  // Behind what was sent before.
  const base::TimeMs last_ms = ends_[to].newest_arrival_ms - env_.scheduler.now_ms();
  end(to, std::max<base::TimeMs>(last_ms, 0) + env_.dice.between(1, 20),
      "the peer closed: " + reason);
}

void Wire::cut() {
  if (!std::exchange(carries_, false)) return;
  in_flight_arrives_ = env_.dice.per_mille(500);
  end(kAgent, env_.dice.between(0, kNoticedWithinMs), "the connection is lost");
  end(kPlane, env_.dice.between(0, kNoticedWithinMs), "the connection is lost");
}

void Wire::kill(Side side) {
  ends_[side].alive = false;
  ends_[side].listener.reset();
  end(side == kAgent ? kPlane : kAgent, env_.dice.between(1, 2000), "the peer is gone");
}

void Wire::end(Side side, base::TimeMs delay_ms, std::string reason) {
  env_.scheduler.after(delay_ms, [self = shared_from_this(), side, why = std::move(reason)] {
    End& ending = self->ends_[side];
    if (!std::exchange(ending.alive, false)) return;
    const auto listener = std::exchange(ending.listener, nullptr);
    listener->on_closed(why);
  });
}

}  // namespace cotenant::sim
