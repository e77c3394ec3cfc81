// Which observations the control plane still has to hear of. A value; pure.
//
// A report goes out when it differs from the last one sent, and again when it was not acknowledged
// in time (the control plane could not store it) or the connection was lost (the hello carries
// all).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/desired.h"

namespace cotenant::agent {

class ReportTracker {
 public:
  explicit ReportTracker(base::TimeMs resend_after_ms) : resend_after_ms_(resend_after_ms) {}

  // A hello with these went out: nothing else is owed.
  void sent_all(const std::vector<core::TaskObservation>& observed, std::int64_t seq);
  // What is to be sent now under `seq`; it counts as sent.
  std::vector<core::TaskObservation> take(const std::vector<core::TaskObservation>& observed,
                                          std::int64_t seq, base::TimeMs now_ms);
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
