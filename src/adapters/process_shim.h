// Starts the shim (shim/shim.cc) that stands behind a container of the `process` runtime. Its program
// is part of cotenant and is run from memory (memfd_create), so that nothing has to be installed and
// an upgrade of cotenant does not touch shims that run.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/process_record.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace cotenant::adapters {

std::string_view process_shim_image();

// Any thread. `lock` is the container's lock file, locked; the shim holds it from now on. Success:
// the program was started, and its `state` is written. Errors: kClient (the program cannot be run;
// the text says what is wrong), kIo (there is no shim).
base::Status start_process(const ProcessConfig& config, const std::string& folder,
                           const base::UniqueFd& lock);

// A handle (pidfd) on the shim of the container in `folder`; none: it does not run, or is only being
// started. Any thread. Errors: kNotFound (no such container), kIo.
base::Result<base::UniqueFd> open_running_shim(const std::string& folder);

// Any thread. A program beside the container's, in its environment and folder, as its user: a child of
// ours, which leads a process group and a session and ends with this thread. `streams`: its standard input, output and error;
// `is_terminal`: they are one. Errors: as of start_process().
base::Result<pid_t> start_exec(const ProcessConfig& config, const std::string& folder,
                               const std::vector<std::string>& command, bool is_terminal,
                               const std::array<int, 3>& streams);

}  // namespace cotenant::adapters
