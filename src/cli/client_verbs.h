// The verbs that talk to a control plane. Each returns an exit code (exit_code.h).
#pragma once

#include "cli/options.h"

namespace cotenant::cli {

int run_verb(const ClientOptions& client, const RunOptions& options);
int explain_verb(const ClientOptions& client, const ExplainOptions& options);
int ps_verb(const ClientOptions& client, bool all);
int stop_verb(const ClientOptions& client, const StopOptions& options);
// Asks no control plane: a replay in this process.
int simulate_verb(const SimulateOptions& options);
int gpus_verb(const ClientOptions& client);
int logs_verb(const ClientOptions& client, const LogsOptions& options);
int exec_verb(const ClientOptions& client, const ExecOptions& options);
int token_create_verb(const ClientOptions& client, const TokenOptions& options);
int token_list_verb(const ClientOptions& client);
int token_revoke_verb(const ClientOptions& client, const TokenOptions& options);
int token_forget_verb(const ClientOptions& client, const TokenOptions& options);

}  // namespace cotenant::cli
