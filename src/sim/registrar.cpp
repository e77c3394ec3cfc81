#include "sim/registrar.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
#include "core/reducer.h"
#include "sim/definitions.h"

namespace cotenant::sim {
namespace {

using core::RecordKind;

std::string name_of(const std::pair<std::string, std::int64_t>& key) {
  return fmt::format("{}:{}", key.first, key.second);
}

std::string shown(const std::optional<std::string>& value) {
  return value ? *value : "none";
}

}  // namespace

Registrar::Registrar(Env& env, Caller& caller) : env_(env), caller_(caller) {
  clusters_[core::kDefaultCluster] = kActive;
}

// --- Task definitions ---

void Registrar::register_definitions() {
  for (std::size_t kind = 0; kind < definition_count(); ++kind) register_definition(kind);
}

void Registrar::register_definition(std::size_t kind) {
  const std::string image = fmt::format("image-{}", ++images_);
  const auto body = codec::Json::parse(definition_body(kind, image));
  COTENANT_ASSERT(body.has_value());
  auto decoded = codec::decode_register_task_definition(*body);
  COTENANT_ASSERT(decoded.has_value());
  env_.journal.note("client: RegisterTaskDefinition {} {}", definition_family(kind), image);
  caller_.send(std::move(decoded->value),
               [this, image](Fate fate, const core::Reply* reply, auto*) {
                 if (fate != Fate::kAcknowledged) return;
                 const auto& made = std::get<core::TaskDefinitionReply>(*reply);
                 const DefinitionKey key{made.family, made.revision};
                 if (!definitions_.emplace(key, Definition{image}).second) {
                   env_.journal.violation("{} was answered to two registrations", name_of(key));
                 }
                 known_.push_back(key);
               });
}

const Registrar::DefinitionKey* Registrar::any_known() {
  return known_.empty() ? nullptr : &env_.dice.any(known_);
}

void Registrar::deregister_definition() {
  const DefinitionKey* any = any_known();
  if (any == nullptr) return;
  env_.journal.note("client: DeregisterTaskDefinition {}", name_of(*any));
  caller_.send(core::DeregisterTaskDefinition{{any->first, any->second}},
               [this, key = *any](Fate fate, auto*, auto*) {
                 unsigned& may_be = definitions_.at(key).may_be;
                 if (fate == Fate::kRefused) return;
                 if (fate == Fate::kUnknown) {
                   if ((may_be & kActive) != 0) may_be |= kInactive;
                   return;
                 }
                 if ((may_be & kActive) == 0) {
                   env_.journal.violation("{} was deregistered, and was not ACTIVE", name_of(key));
                 }
                 may_be = kInactive;
               });
}

void Registrar::delete_definitions() {
  std::vector<DefinitionKey> keys;
  for (std::int64_t i = env_.dice.between(1, 3); i > 0; --i) {
    const DefinitionKey* any = any_known();
    if (any != nullptr && std::find(keys.begin(), keys.end(), *any) == keys.end()) {
      keys.push_back(*any);
    }
  }
  if (keys.empty()) return;
  core::DeleteTaskDefinitions command;
  for (const DefinitionKey& key : keys) {
    env_.journal.note("client: DeleteTaskDefinitions {}", name_of(key));
    command.definitions.push_back({key.first, key.second});
  }
  caller_.send(std::move(command), [this, keys](Fate fate, const core::Reply* reply, auto*) {
    delete_settled(keys, fate, reply == nullptr ? nullptr : &std::get<core::ItemsReply>(*reply));
  });
}

void Registrar::delete_settled(const std::vector<DefinitionKey>& keys, Fate fate,
                               const core::ItemsReply* reply) {
  if (fate == Fate::kRefused) return;
  for (std::size_t item = 0; item < keys.size(); ++item) {
    unsigned& may_be = definitions_.at(keys[item]).may_be;
    if (fate == Fate::kUnknown) {
      if ((may_be & kInactive) != 0) may_be |= kDeleting | kGone;
      continue;
    }
    const auto failure = std::find_if(reply->failures.begin(), reply->failures.end(),
                                      [&](const auto& each) { return each.item == item; });
    unsigned now = kDeleting | kGone;
    if (failure != reply->failures.end()) now = failure->reason == "MISSING" ? kGone : kActive;
    // It was INACTIVE, or on its way already.
    const unsigned before = now == (kDeleting | kGone) ? kInactive | kDeleting : now;
    if ((may_be & before) == 0) {
      env_.journal.violation("{} cannot have been what DeleteTaskDefinitions found ({} of {})",
                             name_of(keys[item]), before, may_be);
    }
    may_be = now;
  }
}

std::string Registrar::any_definition(std::size_t kind) {
  const DefinitionKey* any = env_.dice.per_mille(150) ? any_known() : nullptr;
  return any == nullptr ? definition_family(kind) : name_of(*any);
}

void Registrar::ran(const std::string& family, std::int64_t revision, bool named) {
  const auto found = definitions_.find({family, revision});
  // Its registration was never answered.
  if (found == definitions_.end()) return;
  if ((found->second.may_be & kActive) == 0) {
    env_.journal.violation("a task of {}:{} was made, which was not ACTIVE", family, revision);
  }
  if (named) return;
  for (auto at = std::next(found); at != definitions_.end() && at->first.first == family; ++at) {
    if (at->second.may_be != kActive) continue;
    env_.journal.violation("a task of {}:{} was made, and {} was the latest", family, revision,
                           name_of(at->first));
  }
}

// --- Clusters ---

void Registrar::create_cluster(const std::string& name) {
  env_.journal.note("client: CreateCluster {}", name);
  caller_.send(core::CreateCluster{name}, [this, name](Fate fate, auto*, auto*) {
    if (fate == Fate::kRefused) return;
    unsigned& may_be = clusters_.try_emplace(name, kGone).first->second;
    // One that was not there begins without tags.
    if (may_be != kActive) {
      for (auto& [key, values] : tags_) {
        if (key.first == core::RecordRef{RecordKind::kCluster, name}) values.insert(std::nullopt);
      }
    }
    may_be = fate == Fate::kAcknowledged ? kActive : may_be | kActive;
  });
}

void Registrar::delete_cluster(const std::string& name) {
  env_.journal.note("client: DeleteCluster {}", name);
  caller_.send(core::DeleteCluster{name}, [this, name](Fate fate, auto*, auto*) {
    if (fate == Fate::kRefused) return;
    unsigned& may_be = clusters_.try_emplace(name, kGone).first->second;
    // The default one's end is remembered; others' for some time.
    const unsigned deleted = name == core::kDefaultCluster ? kInactive : kInactive | kGone;
    if (fate == Fate::kAcknowledged && may_be == kGone) {
      env_.journal.violation("cluster {} was deleted, and was not there", name);
    }
    if (fate == Fate::kAcknowledged) may_be = deleted;
    if (fate == Fate::kUnknown && (may_be & kActive) != 0) may_be |= deleted;
  });
}

// --- Tags ---

void Registrar::tag(const std::string& cluster, const std::string& task_id) {
  core::TagResource command;
  command.cluster = cluster;
  const std::int64_t dice = env_.dice.below(3);
  const DefinitionKey* any = dice == 1 ? any_known() : nullptr;
  if (dice == 0 && !task_id.empty()) {
    command.resource = {RecordKind::kTask, task_id};
  } else if (any != nullptr) {
    command.resource = {RecordKind::kTaskDefinition, any->first, any->second};
  } else {
    command.resource = {RecordKind::kCluster, core::kDefaultCluster};
  }
  const std::string key = env_.dice.per_mille(500) ? "owner" : "stage";
  std::optional<std::string> value;
  if (env_.dice.per_mille(700)) value = fmt::format("value-{}", ++images_);
  if (value) {
    command.tags.emplace(key, *value);
  } else {
    command.removed_keys.push_back(key);
  }
  env_.journal.note("client: tag {} of {}:{} becomes {}", key, command.resource.id,
                    command.resource.revision, shown(value));
  cluster_of_.emplace(command.resource, cluster);
  const TagKey at{command.resource, key};
  tags_.try_emplace(at, TagValues{std::nullopt});
  caller_.send(std::move(command), [this, at, value](Fate fate, auto*, auto*) {
    TagValues& values = tags_.at(at);
    if (fate == Fate::kAcknowledged) values.clear();
    if (fate != Fate::kRefused) values.insert(value);
  });
}

// --- What must be there ---

void Registrar::check(const core::State& state) {
  check_clusters(state);
  check_definitions(state);
  check_tags(state);
}

void Registrar::check_clusters(const core::State& state) {
  for (auto& [name, may_be] : clusters_) {
    const auto found = state.clusters.find(name);
    const unsigned now = found == state.clusters.end() ? kGone
                         : found->second.active()      ? kActive
                                                       : kInactive;
    if ((may_be & now) == 0) {
      env_.journal.violation("cluster {} is {} and may be {}", name, now, may_be);
    }
    // What is INACTIVE may be forgotten at any time.
    may_be = now == kInactive ? may_be & (kInactive | kGone) : now;
  }
}

void Registrar::check_definitions(const core::State& state) {
  for (auto& [key, known] : definitions_) {
    const auto definition = core::find_definition(state, key.first, key.second);
    unsigned now = kGone;
    if (definition != nullptr) {
      using Status = core::TaskDefinitionStatus;
      now = definition->status == Status::kActive     ? kActive
            : definition->status == Status::kInactive ? kInactive
                                                      : kDeleting;
      if (definition->containers[0].image != known.image) {
        env_.journal.violation("task definition {} was acknowledged with {} and has {}",
                               name_of(key), known.image, definition->containers[0].image);
      }
    }
    if ((known.may_be & now) == 0) {
      env_.journal.violation("task definition {} is {} and may be {}", name_of(key), now,
                             known.may_be);
    }
    known.may_be = now == kDeleting ? kDeleting | kGone : now;
    if (now == kGone) std::erase(known_, key);
  }
}

void Registrar::check_tags(const core::State& state) {
  for (auto& [key, values] : tags_) {
    const core::RecordRef& ref = key.first;
    const core::Tags* tags = core::find_tags(state, ref, cluster_of_.at(ref));
    if (tags == nullptr) continue;  // gone with what it was on
    const auto found = tags->find(key.second);
    const std::optional<std::string> now =
        found == tags->end() ? std::nullopt : std::optional(found->second);
    if (!values.contains(now)) {
      env_.journal.violation("the tag {} of {}:{} is {}, and was never answered so", key.second,
                             ref.id, ref.revision, shown(now));
    }
    values = {now};
  }
}

}  // namespace cotenant::sim
