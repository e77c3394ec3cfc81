#include "sim/caller.h"

#include <memory>
#include <utility>

namespace cotenant::sim {

// Shared by the answer and by its owner's end without one.
struct Caller::Pending {
  Caller* caller;
  Settle settle;
  bool answered = false;

  void end(Fate fate, const core::Reply* reply, const core::State* state) {
    if (std::exchange(answered, true)) return;
    --caller->waiting_;
    if (fate == Fate::kAcknowledged) ++caller->acknowledged_;
    if (fate == Fate::kUnknown) ++caller->unknown_;
    settle(fate, reply, state);
  }
  // The process that had it is gone.
  ~Pending() { end(Fate::kUnknown, nullptr, nullptr); }
};

void Caller::send(core::Command command, Settle settle) {
  ++waiting_;
  auto pending = std::make_shared<Pending>();
  pending->caller = this;
  pending->settle = std::move(settle);
  const auto status = plane_.post(
      std::move(command),
      [this, pending](const base::Result<core::Reply>& reply, const core::State& state) {
        if (reply) return pending->end(Fate::kAcknowledged, &*reply, &state);
        env_.journal.note("client: {}", reply.error().message);
        pending->end(plane_.failed() ? Fate::kUnknown : Fate::kRefused, nullptr, nullptr);
      });
  if (!status) pending->end(Fate::kRefused, nullptr, nullptr);
}

}  // namespace cotenant::sim
