// The gate that a sharing container passes before it starts: its GPU's MPS daemon has to answer. A
// client that starts without its daemon does not fail, it runs on the plain GPU without any limit.
//
// As ECS has it: 3 attempts, 2 s and then 4 s between them, 10 s in all, fails closed, with ECS's
// stop reasons (source: the ECS agent's task resource MPSDaemonResource). A value; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace cotenant::agent {

inline constexpr const char* kDaemonNotAvailable =
    "MPS control daemon is not available on this instance";
inline constexpr const char* kDaemonNotResponding =
    "MPS control daemon is not responding on this instance";
inline constexpr const char* kDaemonUnverified = "MPS control daemon verification did not complete";

class HealthGate {
 public:
  static constexpr int kAttempts = 3;
  static constexpr base::TimeMs kWindowMs = 10'000;

  // Whether an attempt may be made now.
  bool due(base::TimeMs now_ms) const { return now_ms >= next_attempt_at_ms_; }
  // The first attempt starts the gate's window.
  void begin(base::TimeMs now_ms);
  void fail_attempt(base::ErrorCode code, base::TimeMs now_ms);
  // The reason when the gate has failed for good.
  std::optional<std::string> failure(base::TimeMs now_ms) const;

 private:
  std::optional<base::TimeMs> began_at_ms_;
  int failed_attempts_ = 0;
  base::TimeMs next_attempt_at_ms_ = 0;
  const char* last_reason_ = nullptr;
};

}  // namespace cotenant::agent
