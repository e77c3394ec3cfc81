// Changes of a State that are undone at the end of the scope. Private to core.
//
// What a dry run may touch has to be noted here before: an instance, a definition's family, a cluster's
// workload and engine. Costs what it touches, whatever the size of the cluster.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/reducer.h"

namespace cotenant::core {

class DryRun {
 public:
  DryRun(State& state, const std::string& cluster);
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  void touch_instance(const std::string& id);
  void touch_family(const std::string& family);
  void forget_task_afterwards(const std::string& id) { new_tasks_.push_back(id); }
  // From here on decisions are made by a copy of the cluster's engine, with what it has cached for this.
  void fork_engine(std::string_view policy, const PlacementQuery& query);

 private:
  State& state_;
  const std::string cluster_;
  std::map<std::string, Instance> instances_;
  std::map<std::string, std::optional<TaskDefinitionFamily>> families_;
  std::vector<std::string> new_tasks_;
  std::optional<Workload> workload_;  // nothing: the cluster had none
  std::optional<PolicyEngine> engine_;
  std::uint64_t fleet_changes_ = 0;  // where the fleet's log stood
};

}  // namespace cotenant::core
