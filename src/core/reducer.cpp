#include "core/reducer.h"

#include <type_traits>
#include <variant>

#include "core/reducer_rules.h"

namespace cotenant::core {

base::Result<Outcome> apply(State& state, const Command& command, const Context& context) {
  struct Dispatch {
    State& state;
    const Context& context;

    base::Result<Outcome> operator()(const CreateCluster& c) const {
      return rules::create_cluster(state, c, context);
    }
    base::Result<Outcome> operator()(const UpdateClusterSettings& c) const {
      return rules::update_cluster_settings(state, c);
    }
    base::Result<Outcome> operator()(const RegisterTaskDefinition& c) const {
      return rules::register_task_definition(state, c, context);
    }
    base::Result<Outcome> operator()(const RunTask& c) const {
      return rules::run_task(state, c, context);
    }
    base::Result<Outcome> operator()(const StopTask& c) const {
      return rules::stop_task(state, c, context);
    }
    base::Result<Outcome> operator()(const ConnectInstance& c) const {
      return rules::connect_instance(state, c, context);
    }
    base::Result<Outcome> operator()(const DisconnectInstance& c) const {
      return rules::disconnect_instance(state, c);
    }
    base::Result<Outcome> operator()(const ObserveTasks& c) const {
      return rules::observe_tasks(state, c, context);
    }
    base::Result<Outcome> operator()(const DeleteCluster& c) const {
      return rules::delete_cluster(state, c, context);
    }
    base::Result<Outcome> operator()(const DeregisterTaskDefinition& c) const {
      return rules::deregister_task_definition(state, c, context);
    }
    base::Result<Outcome> operator()(const DeleteTaskDefinitions& c) const {
      return rules::delete_task_definitions(state, c, context);
    }
    base::Result<Outcome> operator()(const StartTask& c) const {
      return rules::start_task(state, c, context);
    }
    base::Result<Outcome> operator()(const UpdateInstancesState& c) const {
      return rules::update_instances_state(state, c);
    }
    base::Result<Outcome> operator()(const DeregisterInstance& c) const {
      return rules::deregister_instance(state, c, context);
    }
    base::Result<Outcome> operator()(const TagResource& c) const {
      return rules::tag_resource(state, c);
    }
    base::Result<Outcome> operator()(const PutAccountSetting& c) const {
      return rules::put_account_setting(state, c);
    }
    base::Result<Outcome> operator()(const PutAttributes& c) const {
      return rules::put_attributes(state, c);
    }
    base::Result<Outcome> operator()(const DeleteAttributes& c) const {
      return rules::delete_attributes(state, c);
    }
    base::Result<Outcome> operator()(const Expire&) const { return rules::expire(state, context); }
  };
  return std::visit(Dispatch{state, context}, command);
}

State initial_state(base::TimeMs now_ms) {
  State state;
  state.clusters.emplace(kDefaultCluster, Cluster{kDefaultCluster, now_ms, {}});
  return state;
}

}  // namespace cotenant::core
