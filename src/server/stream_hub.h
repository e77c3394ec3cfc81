// The streams of logs and exec that are open or about to be: who asked, which agent is to serve.
//
// A client asks for a stream (OpenStream) and gets its id, which nobody can guess; it connects to
// GET /v1/streams/<id>; then the agent is asked to connect to GET /agent/v1/streams/<id>. An id is
// good for one client and one agent, and for a short while. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "codec/agent_message.h"
#include "server/stream_relay.h"

namespace cotenant::server {

class StreamHub {
 public:
  static constexpr std::size_t kStreamsMax = 256;
  // Fewer than an agent serves (agent/stream_service.h), whose last ones may not have ended yet.
  static constexpr std::size_t kStreamsPerInstanceMax = 48;
  // From one step to the next.
  static constexpr base::TimeMs kStepMs = 15'000;

  // Sends to the agent of that instance; false: it is not connected.
  using Ask = std::function<bool(const std::string& instance_id, const codec::ServerStream&)>;

  StreamHub(const base::Clock& clock, Ask ask);

  // The stream's id. Errors: kLimitExceeded.
  base::Result<std::string> open(const std::string& instance_id, std::string container_id,
                                 codec::StreamRequest request);
  // For the WebSockets of an id. Errors: kInvalidParameter (no such stream, or taken already);
  // kUnavailable (the agent is gone).
  base::Result<std::shared_ptr<ports::WebSocketListener>> accept_client(const std::string& id);
  // `instance_id`: the one that this agent speaks for; empty: any.
  base::Result<std::shared_ptr<ports::WebSocketListener>> accept_agent(
      const std::string& id, const std::string& instance_id);

 private:
  struct Stream {
    std::string instance_id;
    codec::ServerStream asked;
    base::TimeMs at_ms = 0;  // of the last step
    bool has_client = false;
    bool has_agent = false;
    std::shared_ptr<StreamRelay> relay = std::make_shared<StreamRelay>();
  };
  void sweep();  // with mutex_ held

  const base::Clock& clock_;
  const Ask ask_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, Stream> streams_;
};

}  // namespace cotenant::server
