// One GPU's MPS console: `nvidia-cuda-mps-control` without flags, one process for each command,
// which reads the command from standard input and prints the answer. Exit code 0: the daemon
// answered; positive: it is not there or refuses; no return: it is wedged.
//
// Stateless but for its settings. Two sessions at one daemon collide, so the caller serialises the
// calls of one GPU, and a refusal, which may be due to somebody else's session, is tried again a few
// times within about 100 ms. Errors: kUnavailable, kTimeout, kIo (no such program) as in
// ports/mps_control.h.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cotenant::adapters {

struct MpsConsole {
  std::string gpu_uuid;  // for messages
  std::string control_binary;
  std::vector<std::string> environment;
  std::chrono::milliseconds timeout{3000};

  // The answer without blanks at its ends.
  base::Result<std::string> command(const std::string& command) const;

  // Once.
  base::Result<std::string> ask(const std::string& command) const;

  base::Result<double> default_active_thread_percentage() const;
  base::Result<std::vector<pid_t>> server_list() const;
  // "INITIALIZING", "ACTIVE", "FAULT", or whatever else the daemon says.
  base::Result<std::string> server_status(pid_t server) const;
};

// Pids between any blanks; nothing when anything else stands there.
base::Result<std::vector<pid_t>> parse_server_list(std::string_view answer);
// "25.0": 0 to 100, always with a point, whatever the locale.
base::Result<double> parse_thread_percentage(std::string_view answer);

}  // namespace cotenant::adapters
