// TagResource and UntagResource.
#include <memory>
#include <string>
#include <utility>

#include "core/reducer_rules.h"

namespace cotenant::core::rules {
namespace {

base::Result<Tags> changed_tags(Tags tags, const TagResource& command) {
  for (const std::string& key : command.removed_keys) tags.erase(key);
  return merged_tags(std::move(tags), command.tags);
}

}  // namespace

Result<Outcome> tag_resource(State& state, const TagResource& command) {
  const RecordRef& ref = command.resource;
  const Tags* present = find_tags(state, ref, command.cluster);
  if (present == nullptr) {
    return base::fail(
        base::ErrorCode::kResourceNotFound,
        "resourceArn: The specified resource was not found; it may have been deleted");
  }
  auto tags = changed_tags(*present, command);
  if (!tags) return base::fail(tags.error());
  if (*tags == *present) return Outcome{};
  if (ref.kind == RecordKind::kCluster) {
    state.clusters.at(ref.id).tags = std::move(*tags);
  } else if (ref.kind == RecordKind::kInstance) {
    state.instances.at(ref.id).tags = std::move(*tags);
  } else if (ref.kind == RecordKind::kTask) {
    state.tasks.at(ref.id).tags = std::move(*tags);
  } else {
    TaskDefinitionPtr& definition = state.families.at(ref.id).revisions.at(ref.revision);
    auto changed = std::make_shared<TaskDefinition>(*definition);
    changed->tags = std::move(*tags);
    definition = std::move(changed);
  }
  Outcome outcome;
  outcome.effects.changed_records.insert(ref);
  return outcome;
}

}  // namespace cotenant::core::rules
