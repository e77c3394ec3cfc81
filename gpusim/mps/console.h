// The console: nvidia-cuda-mps-control without flags. One command a line from stdin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpusim::mps {

inline constexpr size_t kMaxCommand = 4096;

// One command to the daemon is its bare text. The answer comes in parts; the last one says so.
struct ConsoleReply {
  uint32_t magic;
  uint32_t is_last;
  uint32_t failed;  // of v3: the text is an error
  uint32_t length;
  char text[8192];
};

// 0 when a daemon answered everything, 1 when none is there or it went away. Does not return while
// a daemon is there but does not answer, as NVIDIA's does not. Commands are lines of standard input,
// or the one given.
int run_console();
int run_command(const std::string& command);

}  // namespace gpusim::mps
