// A program beside the one of a container of the `process` runtime: in its environment and folder, as
// its user, started by the shim's program (shim/options.h, "exec").
#pragma once

#include <memory>
#include <string>

#include "adapters/process_record.h"
#include "base/result.h"
#include "ports/container_streams.h"

namespace cotenant::adapters {

// Any thread; the program ends with it, so that none is left when the agent is killed. Errors: kConflict
// (the container does not run), kClient (the program cannot be run), kIo.
base::Result<std::unique_ptr<ports::ExecSession>> exec_beside_process(
    const ProcessConfig& config, const std::string& folder, const ports::ExecRequest& request);

}  // namespace cotenant::adapters
