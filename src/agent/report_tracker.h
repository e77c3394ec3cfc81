// Which observations the control plane still has to hear of. A value; pure.
//
// A report goes out when it differs from the last one sent, and again when it was not acknowledged
// in time (the control plane could not store it) or the connection was lost (the hello carries
// all).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "core/desired.h"

namespace cotenant::agent {

class ReportTracker {
 public:
  // Half of what a frame may have.
  static constexpr std::size_t kReportBytes = base::limits::kAgentFrameBytes / 2;

  explicit ReportTracker(base::TimeMs resend_after_ms) : resend_after_ms_(resend_after_ms) {}

  // A hello with these went out: what differs from them is owed.
  void sent_all(const std::vector<core::TaskObservation>& observed, std::int64_t seq);
  // What is to be sent now under `seq`, at most about `bytes_max` of it (but one task always); it
  // counts as sent. Nothing: nothing is owed.
  std::vector<core::TaskObservation> take(const std::vector<core::TaskObservation>& observed,
                                          std::int64_t seq, base::TimeMs now_ms,
                                          std::size_t bytes_max = kReportBytes);
  // The control plane has stored everything up to `seq`.
  void acknowledge(std::int64_t seq);

 private:
  struct Sent {
    core::TaskObservation observation;
    std::int64_t seq = 0;
    bool acknowledged = false;
    base::TimeMs at_ms = 0;
  };

  base::TimeMs resend_after_ms_;
  std::map<std::string, Sent> sent_;  // by task id
};

}  // namespace cotenant::agent
