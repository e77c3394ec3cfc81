// The reducer's rules, one file a subject. Private to core; callers use apply().
#pragma once

#include <string_view>

#include "core/reducer.h"

namespace cotenant::core::rules {

using base::Result;

Result<Outcome> create_cluster(State& state, const CreateCluster& command, const Context& context);
Result<Outcome> update_cluster_settings(State& state, const UpdateClusterSettings& command);
Result<Outcome> register_task_definition(State& state, const RegisterTaskDefinition& command,
                                         const Context& context);
Result<Outcome> run_task(State& state, const RunTask& command, const Context& context);
Result<Outcome> stop_task(State& state, const StopTask& command, const Context& context);
Result<Outcome> connect_instance(State& state, const ConnectInstance& command,
                                 const Context& context);
Result<Outcome> disconnect_instance(State& state, const DisconnectInstance& command);
Result<Outcome> observe_tasks(State& state, const ObserveTasks& command, const Context& context);
Result<Outcome> delete_cluster(State& state, const DeleteCluster& command, const Context& context);
Result<Outcome> deregister_task_definition(State& state, const DeregisterTaskDefinition& command,
                                           const Context& context);
Result<Outcome> delete_task_definitions(State& state, const DeleteTaskDefinitions& command,
                                        const Context& context);
Result<Outcome> start_task(State& state, const StartTask& command, const Context& context);
Result<Outcome> update_instances_state(State& state, const UpdateInstancesState& command);
Result<Outcome> deregister_instance(State& state, const DeregisterInstance& command,
                                    const Context& context);
Result<Outcome> tag_resource(State& state, const TagResource& command);
Result<Outcome> put_account_setting(State& state, const PutAccountSetting& command);
// The task's instance is none any more: STOPPED, whatever its containers do, and nothing is held.
void give_up_task(State& state, Task& task, std::string_view why, const Context& context,
                  Effects& effects);
// Gives up to `max` tasks of an INACTIVE instance up. True when there are more.
bool give_up_tasks(State& state, Instance& instance, std::size_t max, const Context& context,
                   Effects& effects);
Result<Outcome> put_attributes(State& state, const PutAttributes& command);
Result<Outcome> delete_attributes(State& state, const DeleteAttributes& command);
Result<Outcome> expire(State& state, const Context& context);

}  // namespace cotenant::core::rules
