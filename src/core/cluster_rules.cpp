// Clusters, task definitions and what time takes away.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/reducer_rules.h"

namespace cotenant::core::rules {
namespace {

namespace limits = base::limits;

// What one Expire may still remove.
class Budget {
 public:
  bool take() {
    if (left_ == 0) return !(exhausted_ = true);
    --left_;
    return true;
  }
  std::size_t rest() const { return left_; }
  bool exhausted() const { return exhausted_; }

 private:
  std::size_t left_ = limits::kExpiredPerCommand;
  bool exhausted_ = false;
};

// Removes those for which `past(value)` holds, as far as the budget goes.
template <class Map, class Past, class Ref>
void remove_past(Map& map, Budget& budget, Effects& effects, Past past, Ref ref) {
  for (auto at = map.begin(); at != map.end();) {
    if (past(at->second) && budget.take()) {
      effects.changed_records.insert(ref(at->first));
      at = map.erase(at);
    } else {
      ++at;
    }
  }
}

// INACTIVE instances that hold no task any more.
void remove_instances(State& state, Budget& budget, const Context& context, Effects& effects) {
  std::vector<std::string> past;
  for (const auto& [id, instance] : state.instances) {
    if (instance.status == InstanceStatus::kInactive && instance.task_ids.empty() &&
        instance.deregistered_at_ms + limits::kInactiveRetentionMs <= context.now_ms) {
      past.push_back(id);
    }
  }
  for (const std::string& id : past) {
    if (!budget.take()) return;
    remove_instance(state, id);
    effects.changed_records.insert({RecordKind::kInstance, id});
  }
}

// Revisions that are to go and that no task refers to any more. The family stays and remembers its
// numbers, as ECS does.
void remove_definitions(State& state, Budget& budget, Effects& effects) {
  std::set<std::pair<std::string, std::int64_t>> doomed;
  for (const auto& [name, family] : state.families) {
    for (const auto& [revision, definition] : family.revisions) {
      if (definition->status == TaskDefinitionStatus::kDeleteInProgress) {
        doomed.insert({name, revision});
      }
    }
  }
  if (doomed.empty()) return;
  for (const auto& [id, task] : state.tasks) doomed.erase({task.family, task.revision});
  for (const auto& [name, revision] : doomed) {
    if (!budget.take()) return;
    TaskDefinitionFamily& family = state.families.at(name);
    family.revisions.erase(revision);
    effects.changed_records.insert({RecordKind::kTaskDefinition, name, revision});
    if (revision <= family.last_deleted_revision) continue;
    family.last_deleted_revision = revision;
    effects.changed_records.insert({RecordKind::kTaskDefinitionFamily, name});
  }
}

base::Status check_definition_counts(const State& state, const std::string& family) {
  if (state.families.count(family) == 0 && state.families.size() >= limits::kFamilies) {
    return base::fail(base::ErrorCode::kLimitExceeded,
                      fmt::format("family: there are {} families already, the most there can be",
                                  limits::kFamilies));
  }
  std::size_t definitions = 0;
  for (const auto& [name, entry] : state.families) definitions += entry.revisions.size();
  if (definitions < limits::kTaskDefinitions) return {};
  return base::fail(base::ErrorCode::kLimitExceeded,
                    fmt::format("family: there are {} task definitions already, the most there can "
                                "be; deregister and delete some",
                                limits::kTaskDefinitions));
}

}  // namespace

Result<Outcome> create_cluster(State& state, const CreateCluster& command, const Context& context) {
  Outcome outcome;
  outcome.reply = ClusterReply{command.name};
  const auto known = state.clusters.find(command.name);
  if (known != state.clusters.end() && known->second.active()) return outcome;
  if (known == state.clusters.end() && state.clusters.size() >= limits::kClusters) {
    return base::fail(
        base::ErrorCode::kLimitExceeded,
        fmt::format("clusterName: there are {} clusters already, the most there can be",
                    limits::kClusters));
  }
  Cluster cluster;
  cluster.name = command.name;
  cluster.created_at_ms = context.now_ms;
  cluster.tags = command.tags;
  cluster.settings = command.settings;
  state.clusters[command.name] = std::move(cluster);
  outcome.effects.changed_records.insert({RecordKind::kCluster, command.name});
  return outcome;
}

Result<Outcome> delete_cluster(State& state, const DeleteCluster& command, const Context& context) {
  Outcome outcome;
  outcome.reply = ClusterReply{command.name};
  const auto known = state.clusters.find(command.name);
  // Deleting it again shows it again, as ECS does.
  if (known != state.clusters.end() && !known->second.active()) return outcome;
  if (auto status = require_cluster(state, command.name); !status) {
    return base::fail(status.error());
  }
  const auto instances =
      std::count_if(state.instances.begin(), state.instances.end(), [&](const auto& entry) {
        return entry.second.registration.cluster == command.name &&
               entry.second.status != InstanceStatus::kInactive;
      });
  if (instances > 0) {
    return base::fail(
        base::ErrorCode::kClusterContainsContainerInstances,
        fmt::format(
            "cluster: The Cluster cannot be deleted while Container Instances are active or "
            "draining: '{}' has {}; DeregisterContainerInstance each first",
            command.name, instances));
  }
  const auto tasks = std::count_if(state.tasks.begin(), state.tasks.end(), [&](const auto& entry) {
    return entry.second.cluster == command.name && holds_reservation(entry.second);
  });
  if (tasks > 0) {
    return base::fail(base::ErrorCode::kClusterContainsTasks,
                      fmt::format("cluster: The Cluster cannot be deleted while Tasks are active: "
                                  "'{}' has {}; StopTask each first",
                                  command.name, tasks));
  }
  known->second.deleted_at_ms = context.now_ms;
  outcome.effects.changed_records.insert({RecordKind::kCluster, command.name});
  return outcome;
}

Result<Outcome> update_cluster_settings(State& state, const UpdateClusterSettings& command) {
  if (auto status = require_cluster(state, command.cluster); !status) {
    return base::fail(status.error());
  }
  Cluster& cluster = state.clusters.at(command.cluster);
  for (const auto& [name, value] : command.settings) cluster.settings[name] = value;
  Outcome outcome;
  outcome.reply = ClusterReply{cluster.name};
  outcome.effects.changed_records.insert({RecordKind::kCluster, cluster.name});
  return outcome;
}

Result<Outcome> register_task_definition(State& state, const RegisterTaskDefinition& command,
                                         const Context& context) {
  TaskDefinition definition = command.definition;
  if (auto status = check_definition_counts(state, definition.family); !status) {
    return base::fail(status.error());
  }
  const auto family = state.families.find(definition.family);
  std::int64_t last = 0;
  if (family != state.families.end()) {
    const auto& revisions = family->second.revisions;
    last = std::max(family->second.last_deleted_revision,
                    revisions.empty() ? 0 : revisions.rbegin()->first);
  }
  definition.revision = last + 1;
  if (definition.revision > static_cast<std::int64_t>(limits::kRevisionsPerFamily)) {
    return base::fail(base::ErrorCode::kLimitExceeded,
                      fmt::format("family: '{}' has {} revisions already, the most there can be",
                                  definition.family, limits::kRevisionsPerFamily));
  }
  definition.registered_at_ms = context.now_ms;

  Outcome outcome;
  outcome.reply = TaskDefinitionReply{definition.family, definition.revision};
  outcome.effects.changed_records.insert(
      {RecordKind::kTaskDefinition, definition.family, definition.revision});
  auto stored = std::make_shared<const TaskDefinition>(std::move(definition));
  state.families[stored->family].revisions.emplace(stored->revision, stored);
  return outcome;
}

Result<Outcome> expire(State& state, const Context& context) {
  Outcome outcome;
  Budget budget;
  const auto older = [&](base::TimeMs at_ms, base::TimeMs retention_ms) {
    return at_ms + retention_ms <= context.now_ms;
  };
  remove_past(
      state.tasks, budget, outcome.effects,
      [&](const Task& task) {
        return !holds_reservation(task) &&
               older(task.stopped_at_ms, limits::kStoppedTaskRetentionMs);
      },
      [](const std::string& id) {
        return RecordRef{RecordKind::kTask, id};
      });
  remove_past(
      state.client_tokens, budget, outcome.effects,
      [&](const ClientToken& token) {
        return older(token.created_at_ms, limits::kClientTokenRetentionMs);
      },
      [](const std::string& key) {
        return RecordRef{RecordKind::kClientToken, key};
      });
  remove_instances(state, budget, context, outcome.effects);
  // A new installation would make the default cluster again: its end is remembered.
  remove_past(
      state.clusters, budget, outcome.effects,
      [&](const Cluster& cluster) {
        return !cluster.active() && cluster.name != kDefaultCluster &&
               older(cluster.deleted_at_ms, limits::kInactiveRetentionMs);
      },
      [](const std::string& name) {
        return RecordRef{RecordKind::kCluster, name};
      });
  remove_definitions(state, budget, outcome.effects);
  // What a crash has left of a deregistration.
  for (auto& [id, instance] : state.instances) {
    if (instance.status != InstanceStatus::kInactive || instance.task_ids.empty()) continue;
    give_up_tasks(state, instance, budget.rest(), context, outcome.effects);
  }
  outcome.reply = BoundedReply{budget.exhausted()};
  return outcome;
}

}  // namespace cotenant::core::rules
