// PutAttributes and DeleteAttributes: attributes that an operator gives to an instance, beside those
// that its agent registered. Where both give a name a value, the operator's counts.
#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "core/reducer_rules.h"

namespace cotenant::core::rules {
namespace {

using base::ErrorCode;
using base::fail;

// Errors: kTargetNotFound, kAttributeLimitExceeded.
base::Status check_target(const State& state, const std::string& cluster, const std::string& id) {
  const auto found = state.instances.find(id);
  if (found != state.instances.end() && found->second.registration.cluster == cluster) return {};
  return fail(ErrorCode::kTargetNotFound,
              fmt::format("there is no container instance '{}' in the cluster '{}'", id, cluster));
}

}  // namespace

Result<Outcome> put_attributes(State& state, const PutAttributes& command) {
  if (auto status = require_cluster(state, command.cluster); !status) return fail(status.error());
  // All or nothing: what the instances would have is made first.
  std::map<std::string, std::map<std::string, std::string>> planned;
  for (const TargetAttribute& attribute : command.attributes) {
    const std::string& id = attribute.instance_id;
    if (auto status = check_target(state, command.cluster, id); !status) {
      return fail(status.error());
    }
    auto& custom = planned.try_emplace(id, state.instances.at(id).custom_attributes).first->second;
    custom[attribute.name] = attribute.value;
    if (custom.size() > base::limits::kCustomAttributes) {
      return fail(ErrorCode::kAttributeLimitExceeded,
                  fmt::format("container instance '{}' would have more than {} custom attributes; "
                              "delete some first",
                              id, base::limits::kCustomAttributes));
    }
  }
  Outcome outcome;
  for (auto& [id, custom] : planned) {
    Instance& instance = state.instances.at(id);
    if (instance.custom_attributes == custom) continue;
    instance.custom_attributes = std::move(custom);
    instance_changed(state, instance);
    outcome.effects.changed_records.insert({RecordKind::kInstance, id});
  }
  return outcome;
}

Result<Outcome> delete_attributes(State& state, const DeleteAttributes& command) {
  if (auto status = require_cluster(state, command.cluster); !status) return fail(status.error());
  for (const TargetAttribute& attribute : command.attributes) {
    if (auto status = check_target(state, command.cluster, attribute.instance_id); !status) {
      return fail(status.error());
    }
  }
  Outcome outcome;
  for (const TargetAttribute& attribute : command.attributes) {
    Instance& instance = state.instances.at(attribute.instance_id);
    if (instance.custom_attributes.erase(attribute.name) == 0) continue;
    instance_changed(state, instance);
    outcome.effects.changed_records.insert({RecordKind::kInstance, attribute.instance_id});
  }
  return outcome;
}

}  // namespace cotenant::core::rules
