// Clusters, task definitions and what time takes away.
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "core/reducer_rules.h"

namespace cotenant::core::rules {

Result<Outcome> create_cluster(State& state, const CreateCluster& command, const Context& context) {
  Outcome outcome;
  outcome.reply = ClusterReply{command.name};
  if (state.clusters.count(command.name) > 0) return outcome;
  if (state.clusters.size() >= base::limits::kClusters) {
    return base::fail(
        base::ErrorCode::kLimitExceeded,
        fmt::format("clusterName: there are {} clusters already, the most there can be",
                    base::limits::kClusters));
  }
  state.clusters.emplace(command.name, Cluster{command.name, context.now_ms});
  outcome.effects.changed_records.insert({RecordKind::kCluster, command.name});
  return outcome;
}

Result<Outcome> register_task_definition(State& state, const RegisterTaskDefinition& command,
                                         const Context& context) {
  TaskDefinition definition = command.definition;
  const TaskDefinitionPtr latest = latest_definition(state, definition.family);
  definition.revision = latest == nullptr ? 1 : latest->revision + 1;
  if (definition.revision > static_cast<std::int64_t>(base::limits::kRevisionsPerFamily)) {
    return base::fail(base::ErrorCode::kLimitExceeded,
                      fmt::format("family: '{}' has {} revisions already, the most there can be",
                                  definition.family, base::limits::kRevisionsPerFamily));
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
  for (auto it = state.tasks.begin(); it != state.tasks.end();) {
    const Task& task = it->second;
    const bool past = !holds_reservation(task) &&
                      task.stopped_at_ms + base::limits::kStoppedTaskRetentionMs <= context.now_ms;
    if (past) outcome.effects.changed_records.insert({RecordKind::kTask, task.id});
    it = past ? state.tasks.erase(it) : std::next(it);
  }
  for (auto it = state.client_tokens.begin(); it != state.client_tokens.end();) {
    const bool past =
        it->second.created_at_ms + base::limits::kClientTokenRetentionMs <= context.now_ms;
    if (past) outcome.effects.changed_records.insert({RecordKind::kClientToken, it->first});
    it = past ? state.client_tokens.erase(it) : std::next(it);
  }
  return outcome;
}

}  // namespace cotenant::core::rules
