// A caller of the control plane's API in a run: sends commands, and learns what became of each.
//
// A call is acknowledged, surely refused, or nobody knows (its control plane was killed, or stopped
// not knowing what is stored).
#pragma once

#include <cstdint>
#include <functional>

#include "core/state.h"
#include "sim/plane.h"

namespace cotenant::sim {

enum class Fate { kAcknowledged, kRefused, kUnknown };

class Caller {
 public:
  // The reply, and the state that its batch left: of an acknowledged call only, else null.
  using Settle = std::function<void(Fate, const core::Reply*, const core::State*)>;

  Caller(Env& env, Plane& plane) : env_(env), plane_(plane) {}

  // `settle` is called exactly once, in the order in which the calls were carried out.
  void send(core::Command command, Settle settle);

  std::int64_t acknowledged() const { return acknowledged_; }
  std::int64_t unknown() const { return unknown_; }
  // Nothing is still to be answered.
  bool idle() const { return waiting_ == 0; }

 private:
  struct Pending;

  Env& env_;
  Plane& plane_;
  std::int64_t waiting_ = 0;
  std::int64_t acknowledged_ = 0;
  std::int64_t unknown_ = 0;
};

}  // namespace cotenant::sim
