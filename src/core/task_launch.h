// From a call of RunTask to tasks with a place, step by step: what run_task, start_task and explain
// share, so that an explanation is the very decision that a run would make.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/command.h"
#include "core/effect.h"
#include "core/placement/placement.h"
#include "core/placement/placement_plan.h"
#include "core/reducer.h"

namespace cotenant::core::rules {

// What a launch needs once its references are resolved.
struct Launch {
  TaskDefinitionPtr definition;
  TaskNeed need;
  Tags tags;
};

// Errors: kClient, no such definition, or not ACTIVE; kInvalidParameter, an override or the number of
// constraints.
base::Result<Launch> prepare_launch(const State& state, const RunTask& command);

// ECS: the group that the call names, else "family:<family>".
std::string group_of(const RunTask& command, const TaskDefinition& definition);

// The call's constraints and strategies with those of its definition, for its tasks one after the
// other. Errors: kInvalidParameter, the cluster has no ACTIVE instance.
base::Result<PlacementPlan> plan_launch(const State& state, const RunTask& command,
                                        const Launch& launch);

// The cluster learns of the request, whether it will find a place or not.
void learn_arrival(State& state, const std::string& cluster, const PlacementPlan& plan,
                   Effects& effects);

// The policy that ranks where the plan has no stages: the call's own, else the cluster's.
std::string_view policy_of(const State& state, const std::string& cluster,
                           const PlacementPlan& plan);

// The choice of the call's strategies, else of that policy. `query` is the plan's, or one that asks for
// more than that. `trace` may be null.
std::optional<PlacementChoice> choose_place(const State& state, const std::string& cluster,
                                            const PlacementPlan& plan, const PlacementQuery& query,
                                            base::Prng& prng, std::vector<StageTrace>* trace);

// The choice is taken: the plan and the cluster count it.
Placement accept_choice(State& state, const std::string& cluster, PlacementPlan& plan,
                        const PlacementChoice& choice);

// Makes the task where it was placed, with its reservation. Returns its id.
std::string launch_task(State& state, const RunTask& command, const Launch& launch,
                        const Placement& placement, const Context& context, Effects& effects);

}  // namespace cotenant::core::rules
