// Which processes belong to an installation: a file with pid and start time, so that only the very process
// that wrote it is ever signalled.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace cotenant::cli {

struct ProcessIdentity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot, /proc/<pid>/stat field 22
  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// Nothing when there is no such process, or it is a zombie.
std::optional<ProcessIdentity> identify(pid_t pid);

base::Status write_pid_file(const std::string& path, pid_t pid);
// Nothing when there is no file, or its process has ended.
std::optional<ProcessIdentity> read_pid_file(const std::string& path);

// SIGTERM, then SIGKILL after `grace`; returns when the process has gone. False: it would not go.
bool end_process(const ProcessIdentity& process, std::chrono::milliseconds grace);

}  // namespace cotenant::cli
