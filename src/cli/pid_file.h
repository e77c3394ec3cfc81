// Which process belongs to an installation: a file with its pid, start time and boot, so that only
// the very process that is named there is ever signalled.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/process_identity.h"
#include "base/result.h"

namespace cotenant::cli {

// Errors: kIo, naming the file.
base::Status write_pid_file(const std::string& path, pid_t pid);

// Nothing when there is no file, or its process has ended.
std::optional<base::ProcessIdentity> read_pid_file(const std::string& path);

// SIGTERM, after `grace` SIGKILL; returns when the process has gone. Errors: kTimeout (after
// another `grace`) and kAccessDenied, naming `what` and the remedy.
base::Status end_recorded_process(const base::ProcessIdentity& process, const std::string& what,
                                  std::chrono::milliseconds grace = std::chrono::seconds(15));

}  // namespace cotenant::cli
