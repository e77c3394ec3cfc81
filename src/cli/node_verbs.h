// The verbs that run cotenant on this machine. Each returns an exit code (exit_code.h).
#pragma once

#include "cli/composition.h"
#include "cli/installation.h"
#include "cli/options.h"

namespace cotenant::cli {

// Runs in the foreground until SIGINT or SIGTERM. Containers, MPS daemons and gpusimd stay when it
// ends.
int node_verb(Role role, const NodeOptions& options, const Composition& composition);

// Removes all that `up`, `server` and `agent` left with this data folder: processes, containers,
// daemons, folders.
int down_verb(const DownOptions& options, const Composition& composition);

// What carries an installation's containers.
base::Result<EngineAdapters> make_engine(const Installation& installation,
                                         const Composition& composition);

// How the MPS daemons of an installation are driven.
MpsOptions mps_options(const Installation& installation);

}  // namespace cotenant::cli
