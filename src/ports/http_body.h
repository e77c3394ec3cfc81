// Bodies and messages that go out piece by piece, with a way for the producer to know that its peer
// is slow: answers of a server (here) and WebSockets (web_socket.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace cotenant::ports {

// A producer stops at this mark and goes on at on_drained().
inline constexpr std::size_t kStreamHighWaterBytes = 256 * 1024;
inline constexpr std::size_t kStreamQueueBytesMax = 8 * kStreamHighWaterBytes;

// A body that goes out piece by piece. Any thread.
class HttpBodyWriter {
 public:
  virtual ~HttpBodyWriter() = default;
  // Queues a piece. A slow peer makes the queue grow: from kStreamHighWaterBytes on, wait for
  // on_drained(). A queue of more than kStreamQueueBytesMax breaks the answer off. After finish(),
  // abort() or on_closed() it does nothing.
  virtual void write(std::string piece) = 0;
  virtual std::size_t queued_bytes() const = 0;
  // The body is complete. on_closed() still follows, once.
  virtual void finish() = 0;
  // The body breaks off, and the peer can tell.
  virtual void abort(std::string reason) = 0;
};

// What a streamed answer tells whoever produces it. Calls of one answer never overlap. There is none
// at all when the peer has left before the answer.
class HttpBodyListener {
 public:
  virtual ~HttpBodyListener() = default;
  virtual void on_open(std::shared_ptr<HttpBodyWriter> writer) = 0;
  // The queue, which had reached kStreamHighWaterBytes, is below half of it again.
  virtual void on_drained() {}
  // The last call, also when the peer left early; the only one when no body can be sent (HEAD). The
  // reason is for a log line.
  virtual void on_closed(std::string_view reason) = 0;
};

}  // namespace cotenant::ports
