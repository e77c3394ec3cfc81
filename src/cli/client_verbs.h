// The verbs that talk to a control plane. Each returns an exit code (exit_code.h).
#pragma once

#include "cli/options.h"

namespace cotenant::cli {

int run_verb(const ClientOptions& client, const RunOptions& options);
int ps_verb(const ClientOptions& client, bool all);
int stop_verb(const ClientOptions& client, const StopOptions& options);
int gpus_verb(const ClientOptions& client);

}  // namespace cotenant::cli
