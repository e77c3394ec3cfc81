#include "adapters/docker_frames.h"

#include <algorithm>

namespace cotenant::adapters {
namespace {

constexpr std::size_t kHeaderBytes = 8;

}  // namespace

base::Status DockerFrames::feed(std::string_view piece, const ports::OnOutput& on_output) {
  if (is_raw_) {
    if (!piece.empty()) on_output(ports::OutputStream::kStdout, piece);
    return {};
  }
  // Every line of a log is a frame of its own; neighbours go on as one piece.
  std::string output;
  ports::OutputStream output_stream = stream_;
  const auto flush = [&] {
    if (!output.empty()) on_output(output_stream, output);
    output.clear();
  };
  while (!piece.empty()) {
    if (left_ > 0) {
      const std::string_view part = piece.substr(0, left_);
      if (stream_ != output_stream) flush();
      output_stream = stream_;
      output += part;
      left_ -= static_cast<std::uint32_t>(part.size());
      piece.remove_prefix(part.size());
      continue;
    }
    const std::size_t wanted = std::min(kHeaderBytes - header_.size(), piece.size());
    header_ += piece.substr(0, wanted);
    piece.remove_prefix(wanted);
    if (header_.size() < kHeaderBytes) break;
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(header_[at]); };
    if (byte(0) > 2 || byte(1) != 0 || byte(2) != 0 || byte(3) != 0) {
      flush();
      return base::fail(base::ErrorCode::kProtocol, "the engine's output is not multiplexed");
    }
    stream_ = byte(0) == 2 ? ports::OutputStream::kStderr : ports::OutputStream::kStdout;
    left_ = std::uint32_t{byte(4)} << 24U | std::uint32_t{byte(5)} << 16U |
            std::uint32_t{byte(6)} << 8U | std::uint32_t{byte(7)};
    header_.clear();
  }
  flush();
  return {};
}

}  // namespace cotenant::adapters
