// The reducer's rules, one file a subject. Private to core; callers use apply().
#pragma once

#include "core/reducer.h"

namespace cotenant::core::rules {

using base::Result;

Result<Outcome> create_cluster(State& state, const CreateCluster& command, const Context& context);
Result<Outcome> register_task_definition(State& state, const RegisterTaskDefinition& command,
                                         const Context& context);
Result<Outcome> run_task(State& state, const RunTask& command, const Context& context);
Result<Outcome> stop_task(State& state, const StopTask& command, const Context& context);
Result<Outcome> connect_instance(State& state, const ConnectInstance& command,
                                 const Context& context);
Result<Outcome> disconnect_instance(State& state, const DisconnectInstance& command);
Result<Outcome> observe_tasks(State& state, const ObserveTasks& command, const Context& context);
Result<Outcome> expire(State& state, const Context& context);

}  // namespace cotenant::core::rules
