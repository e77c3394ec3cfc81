// Where the control plane's shells put commands: the core loop, or a simulator's own.
#pragma once

#include "base/result.h"
#include "server/core_engine.h"

namespace cotenant::server {

// Any thread. `done` is called exactly once when a call succeeds, never otherwise; it runs where the
// state is owned, after the commit.
class CommandQueue {
 public:
  virtual ~CommandQueue() = default;
  // kThrottling when the queue is full.
  virtual base::Status post(core::Command command, CommandDone done) = 0;
  // The same, also when the queue is full: for the end of a connection, which cannot be refused.
  virtual base::Status post_always(core::Command command, CommandDone done) = 0;
};

}  // namespace cotenant::server
