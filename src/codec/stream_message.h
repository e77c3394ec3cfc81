// Logs and exec: what is asked for, and the binary frames that carry it between client, control
// plane and agent (docs/architecture.md). A frame is one byte that names the channel, and then its
// bytes; the control plane passes frames on unread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "codec/json.h"

namespace cotenant::codec {

enum class StreamKind { kLogs, kExec };

struct StreamRequest {
  StreamKind kind = StreamKind::kLogs;
  // Of logs.
  bool follow = false;
  std::optional<std::int64_t> tail;
  base::TimeMs since_ms = 0;
  bool timestamps = false;
  // Of exec.
  std::vector<std::string> command;
  bool with_input = false;
  bool tty = false;
};

Json encode_stream_request(const StreamRequest& request);
// Errors: kInvalidParameter, naming the member.
base::Result<StreamRequest> decode_stream_request(const Json& json);

enum class StreamChannel : unsigned char {
  kReady = 0,     // from the agent, once: it works; no bytes
  kStdout = 1,    // from the agent
  kStderr = 2,    // from the agent
  kEnd = 3,       // from the agent, the last frame: a StreamEnd
  kStdin = 4,     // from the client
  kStdinEnd = 5,  // from the client; no bytes
  kResize = 6,    // from the client: "<columns>x<rows>"
};

struct StreamFrame {
  StreamChannel channel = StreamChannel::kReady;
  std::string_view bytes;
};

// A program of exec with its arguments, each with its end.
inline constexpr std::size_t kExecCommandBytes = std::size_t{64} * 1024;
// Larger output is cut into frames of this size.
inline constexpr std::size_t kStreamFrameBytes = 32 * 1024;

std::string encode_stream_frame(StreamChannel channel, std::string_view bytes = {});
// Points into `text`. Errors: kProtocol.
base::Result<StreamFrame> decode_stream_frame(std::string_view text);

// How a stream ended.
struct StreamEnd {
  std::string error;             // empty: well
  std::optional<int> exit_code;  // of exec
};
std::string encode_stream_end(const StreamEnd& end);
StreamEnd decode_stream_end(std::string_view text);

}  // namespace cotenant::codec
