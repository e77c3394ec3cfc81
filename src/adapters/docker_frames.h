// Cuts the engine's multiplexed output (logs and exec without a terminal) into what came from
// standard output and from standard error. Owned by one thread.
// Source: Docker Engine API reference, "Attach to a container", stream format: a header of 8 bytes,
// [stream, 0, 0, 0, size as 4 bytes big-endian], then so many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ports/container_streams.h"

namespace cotenant::adapters {

class DockerFrames {
 public:
  // A terminal's output is not multiplexed: all of it is standard output.
  explicit DockerFrames(bool is_raw) : is_raw_(is_raw) {}

  // Errors: kProtocol, not in that format.
  base::Status feed(std::string_view piece, const ports::OnOutput& on_output);

 private:
  const bool is_raw_;
  std::string header_;
  ports::OutputStream stream_ = ports::OutputStream::kStdout;
  std::uint32_t left_ = 0;  // of the present frame
};

}  // namespace cotenant::adapters
