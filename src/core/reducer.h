// The rules, as one function: state and command in, reply and effects out.
//
// Pure: time and randomness come in with the context. On an error the state is untouched. Not
// thread
// safe: one thread owns the state.
#pragma once

#include "base/clock.h"
#include "base/prng.h"
#include "base/result.h"
#include "core/command.h"
#include "core/effect.h"
#include "core/state.h"

namespace cotenant::core {

struct Context {
  base::TimeMs now_ms = 0;
  base::Prng& prng;
};

base::Result<Outcome> apply(State& state, const Command& command, const Context& context);

// The state of a new installation: the cluster `default` exists.
State initial_state(base::TimeMs now_ms);
inline constexpr const char* kDefaultCluster = "default";

}  // namespace cotenant::core
