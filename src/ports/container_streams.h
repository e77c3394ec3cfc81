// What comes out of containers, and programs run inside them. Implemented by adapters/docker_streams and
// adapters/process_streams.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace cotenant::ports {

enum class OutputStream { kStdout, kStderr };
using OnOutput = std::function<void(OutputStream, std::string_view)>;

struct LogRequest {
  bool follow = false;               // until the container ends
  std::optional<std::int64_t> tail;  // so many lines from the end; none: all
  base::TimeMs since_ms = 0;
  bool timestamps = false;  // each line begins with its time, RFC 3339
};

struct ExecRequest {
  std::vector<std::string> command;
  bool with_input = false;
  bool tty = false;  // a terminal: all output comes as kStdout
};

// One program that runs inside a container. Any thread; read() by one at a time, and the same for
// write(). Destroying it ends the connection, which ends the program's input; an engine lets the program
// go on.
class ExecSession {
 public:
  virtual ~ExecSession() = default;
  // Hands its output over until it ends; `on_output` may block, and then the program does.
  virtual base::Status read(const OnOutput& on_output) = 0;
  // Waits for a program that does not read.
  virtual base::Status write(std::string_view input) = 0;
  virtual base::Status end_input() = 0;
  virtual base::Status resize(int columns, int rows) = 0;
  virtual base::Result<int> exit_code() = 0;  // after read() has succeeded
  // Makes read() and write() return with an error, also those that wait.
  virtual void close() = 0;
};

// Blocking calls, any thread. Errors: kUnavailable (the engine does not answer), kNotFound (no such
// container), kClient (the engine refuses), kProtocol.
class ContainerStreams {
 public:
  virtual ~ContainerStreams() = default;
  // `on_output` may block. A requested stop is success.
  virtual base::Status logs(const std::string& id, const LogRequest& request,
                            const OnOutput& on_output, std::stop_token stop) = 0;
  // Errors also: kConflict (the container does not run).
  virtual base::Result<std::unique_ptr<ExecSession>> exec(const std::string& id,
                                                          const ExecRequest& request) = 0;
};

}  // namespace cotenant::ports
