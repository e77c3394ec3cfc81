#include "agent/health_gate.h"

namespace cotenant::agent {
namespace {

constexpr base::TimeMs kFirstBackOffMs = 2'000;

}  // namespace

void HealthGate::begin(base::TimeMs now_ms) {
  if (!began_at_ms_) began_at_ms_ = now_ms;
}

void HealthGate::fail_attempt(base::ErrorCode code, base::TimeMs now_ms) {
  begin(now_ms);
  ++failed_attempts_;
  next_attempt_at_ms_ = now_ms + (kFirstBackOffMs << (failed_attempts_ - 1));
  last_reason_ = code == base::ErrorCode::kTimeout ? kDaemonNotResponding : kDaemonNotAvailable;
}

std::optional<std::string> HealthGate::failure(base::TimeMs now_ms) const {
  const bool out_of_time = began_at_ms_ && now_ms >= *began_at_ms_ + kWindowMs;
  if (failed_attempts_ < kAttempts && !out_of_time) return std::nullopt;
  return last_reason_ == nullptr ? kDaemonUnverified : last_reason_;
}

}  // namespace cotenant::agent
