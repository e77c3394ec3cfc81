// The agent's half of the agent protocol: what it says and hears on its connection.
//
// Pure but for log lines: no thread, no clock. One thread owns it together with the AgentLogic that
// it reads and feeds; the loop runs it on the real connection, the simulator on its own. Each
// connection has an epoch; what comes of an older one is ignored. Within a connection the desired
// states are numbered without gaps: a frame that came twice is ignored, one that is missing ends
// the connection, and the next hello brings everything.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_logic.h"
#include "agent/report_tracker.h"
#include "base/clock.h"
#include "base/result.h"
#include "codec/agent_message.h"
#include "ports/http.h"

namespace cotenant::agent {

class ServerDialog {
 public:
  enum class Heard { kNothing, kAccepted, kRefused, kStopFirst, kDismissed };

  // `server`: the control plane's address, for log lines. `logic` outlives the dialog.
  ServerDialog(AgentLogic& logic, base::TimeMs resend_after_ms, std::string boot_id,
               std::string server);

  // A connection is there: says hello.
  void opened(std::int64_t epoch, core::InstanceRegistration registration,
              std::shared_ptr<ports::WebSocket> socket);
  // kAccepted: the control plane has answered this connection's hello. kRefused: it never will; the
  // caller hangs up. kStopFirst: likewise, and nothing is reserved for what runs here: all of it is to
  // stop, and has stopped before the next hello. kDismissed: and there is no next hello.
  Heard received(std::int64_t epoch, base::Result<codec::ServerMessage> message);
  void hang_up(const std::string& reason);
  // False: it was not the present connection.
  bool closed(std::int64_t epoch);
  // Sends what the control plane has not heard of yet.
  void report(base::TimeMs now_ms);

  bool synced() const { return synced_; }
  // The streams that the control plane has asked for since the last call.
  std::vector<codec::ServerStream> take_streams() { return std::exchange(streams_, {}); }

 private:
  Heard desired(codec::ServerDesired message);
  void protest(const std::string& reason);

  AgentLogic& logic_;
  ReportTracker tracker_;
  const std::string boot_id_;
  const std::string server_;
  std::shared_ptr<ports::WebSocket> socket_;
  std::optional<std::vector<core::DesiredTask>> parts_;  // of a full state that is not complete
  std::vector<codec::ServerStream> streams_;
  std::int64_t epoch_ = 0;
  std::int64_t seq_ = 0;       // of the present connection's reports: 1, 2, 3 ...
  std::int64_t revision_ = 0;  // of the newest desired state
  bool synced_ = false;        // the hello of the present connection was answered
};

}  // namespace cotenant::agent
