// What a command has touched: the shell stores the records, then lets the effects out.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "core/command.h"

namespace cotenant::core {

enum class RecordKind { kCluster, kTaskDefinition, kInstance, kTask, kClientToken };

// Names one durable record. `revision` is used by task definitions only.
struct RecordRef {
  RecordKind kind = RecordKind::kCluster;
  std::string id;
  std::int64_t revision = 0;
  friend auto operator<=>(const RecordRef&, const RecordRef&) = default;
};

struct Effects {
  std::set<RecordRef> changed_records;  // to be stored, or removed where State has it no more
  // The tasks whose desired state has changed, by the instance whose agent must hear of it.
  std::map<std::string, std::set<std::string>> notify_tasks;
};

struct Outcome {
  Reply reply;
  Effects effects;
};

}  // namespace cotenant::core
