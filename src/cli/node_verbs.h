// The verbs that run cotenant on this machine. Each returns an exit code (exit_code.h).
#pragma once

#include "cli/composition.h"
#include "cli/options.h"

namespace cotenant::cli {

enum class Role { kUp, kServer, kAgent };

// Runs in the foreground until SIGINT or SIGTERM. Containers, MPS daemons and gpusimd stay when it ends.
int node_verb(Role role, NodeOptions options, const Composition& composition);

// Removes all that `up` left: processes, containers, daemons, folders.
int down_verb(const DownOptions& options, const Composition& composition);

}  // namespace cotenant::cli
