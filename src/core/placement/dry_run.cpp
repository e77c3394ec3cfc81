#include "core/placement/dry_run.h"

#include <utility>

namespace cotenant::core {

DryRun::DryRun(State& state, const std::string& cluster) : state_(state), cluster_(cluster) {
  const auto workload = state.workloads.find(cluster);
  if (workload != state.workloads.end()) workload_ = workload->second;
  const auto placement = state.placements.find(cluster);
  if (placement != state.placements.end()) fleet_changes_ = placement->second.fleet.changes_end();
}

void DryRun::touch_instance(const std::string& id) {
  instances_.try_emplace(id, state_.instances.at(id));
}

void DryRun::touch_family(const std::string& family) {
  const auto found = state_.families.find(family);
  families_.try_emplace(family, found == state_.families.end()
                                    ? std::nullopt
                                    : std::optional<TaskDefinitionFamily>(found->second));
}

void DryRun::fork_engine(std::string_view policy, const PlacementQuery& query) {
  PolicyEngine& engine = state_.placements.at(cluster_).engine;
  PolicyEngine forked = engine.fork(policy, query);
  engine_ = std::exchange(engine, std::move(forked));
}

DryRun::~DryRun() {
  for (const std::string& id : new_tasks_) state_.tasks.erase(id);
  for (auto& [id, before] : instances_) {
    Instance& instance = state_.instances.at(id);
    instance = std::move(before);
    instance_changed(state_, instance);
  }
  for (auto& [family, before] : families_) {
    if (before) {
      state_.families.at(family) = std::move(*before);
    } else {
      state_.families.erase(family);
    }
  }
  if (workload_) {
    state_.workloads.at(cluster_) = std::move(*workload_);
  } else {
    state_.workloads.erase(cluster_);
  }
  const auto placement = state_.placements.find(cluster_);
  if (placement == state_.placements.end()) return;
  if (engine_) placement->second.engine = std::move(*engine_);
  placement->second.engine.skip_undone(fleet_changes_, placement->second.fleet);
}

}  // namespace cotenant::core
