// The end of task definitions: INACTIVE, then DELETE_IN_PROGRESS, then gone (ECS API reference,
// DeregisterTaskDefinition and DeleteTaskDefinitions).
#include <fmt/format.h>

#include <memory>

#include "core/reducer_rules.h"

namespace cotenant::core::rules {
namespace {

// Definitions are immutable: a change is another one in its place.
template <class Change>
void change_definition(State& state, const TaskDefinitionPtr& definition, Effects& effects,
                       Change change) {
  auto changed = std::make_shared<TaskDefinition>(*definition);
  change(*changed);
  state.families.at(definition->family).revisions.at(definition->revision) = std::move(changed);
  effects.changed_records.insert(
      {RecordKind::kTaskDefinition, definition->family, definition->revision});
}

}  // namespace

Result<Outcome> deregister_task_definition(State& state, const DeregisterTaskDefinition& command,
                                           const Context& context) {
  const base::TaskDefinitionRef& ref = command.definition;
  const TaskDefinitionPtr definition = find_definition(state, ref.family, *ref.revision);
  if (definition == nullptr) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("taskDefinition: The specified task definition does not exist: "
                                  "{}:{}",
                                  ref.family, *ref.revision));
  }
  if (definition->status != TaskDefinitionStatus::kActive) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("taskDefinition: The specified task definition is inactive. You can only "
                    "deregister ACTIVE task definitions: {}:{} is {}",
                    ref.family, *ref.revision, to_string(definition->status)));
  }
  Outcome outcome;
  outcome.reply = TaskDefinitionReply{ref.family, *ref.revision};
  change_definition(state, definition, outcome.effects, [&](TaskDefinition& changed) {
    changed.status = TaskDefinitionStatus::kInactive;
    changed.deregistered_at_ms = context.now_ms;
  });
  return outcome;
}

Result<Outcome> delete_task_definitions(State& state, const DeleteTaskDefinitions& command,
                                        const Context& context) {
  Outcome outcome;
  ItemsReply reply;
  for (std::size_t item = 0; item < command.definitions.size(); ++item) {
    const base::TaskDefinitionRef& ref = command.definitions[item];
    const TaskDefinitionPtr definition = find_definition(state, ref.family, *ref.revision);
    if (definition == nullptr) {
      reply.failures.push_back({item, "MISSING", "The specified task definition does not exist."});
    } else if (definition->status == TaskDefinitionStatus::kActive) {
      reply.failures.push_back({item,
                                "The specified task definition is still in ACTIVE status. Please "
                                "deregister the target and try again.",
                                ""});
    } else if (definition->status == TaskDefinitionStatus::kInactive) {
      change_definition(state, definition, outcome.effects, [&](TaskDefinition& changed) {
        changed.status = TaskDefinitionStatus::kDeleteInProgress;
        changed.delete_requested_at_ms = context.now_ms;
      });
    }
  }
  outcome.reply = std::move(reply);
  return outcome;
}

}  // namespace cotenant::core::rules
