// The agent's side of logs and exec: for each stream that the control plane asks for, one
// connection that the agent opens, and one thread that carries bytes between it and the engine.
//
// A slow reader holds up the engine's output (and so the program), never memory: what waits is
// bounded at each step. A stream ends when its end does: the container's log, the program, the
// connection; or with stop(). Any thread; the streams and what `connect` uses must outlive it.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "codec/stream_message.h"
#include "ports/container_streams.h"
#include "ports/web_socket.h"

namespace cotenant::agent {

// Opens a WebSocket at the control plane's GET /agent/v1/streams/<id>.
using StreamConnector = std::function<base::Result<std::shared_ptr<ports::WebSocket>>(
    const std::string& stream_id, std::shared_ptr<ports::WebSocketListener>)>;

class StreamService {
 public:
  static constexpr std::size_t kStreamsMax = 64;

  StreamService(ports::ContainerStreams& streams, StreamConnector connect);
  ~StreamService();
  StreamService(const StreamService&) = delete;
  StreamService& operator=(const StreamService&) = delete;

  // `runtime_id` empty: there is no such container here, which the stream's end says.
  void open(const std::string& stream_id, const std::string& runtime_id,
            codec::StreamRequest request);
  // Ends all streams and waits for their threads.
  void stop();

 private:
  struct Stream;
  void run(Stream& stream);
  void logs(Stream& stream);
  void exec(Stream& stream);
  void join_ended();  // with mutex_ held

  ports::ContainerStreams& streams_;
  const StreamConnector connect_;
  std::mutex mutex_;  // guards what follows
  std::list<std::unique_ptr<Stream>> open_;
  bool stopped_ = false;
};

}  // namespace cotenant::agent
