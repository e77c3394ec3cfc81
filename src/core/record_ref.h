// The names of what is stored.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace cotenant::core {

enum class RecordKind {
  kCluster,
  kTaskDefinition,
  kInstance,
  kTask,
  kClientToken,
  kTaskDefinitionFamily,
  kAccountSetting,
  kWorkload,       // a cluster's counters
  kWorkloadShape,  // one shape of a cluster; its index is `revision`
};

// Names one durable record. `revision` is used by task definitions and shapes only; of an account setting `id` is
// its name and its principal's ARN, with a slash between.
struct RecordRef {
  RecordKind kind = RecordKind::kCluster;
  std::string id;
  std::int64_t revision = 0;
  friend auto operator<=>(const RecordRef&, const RecordRef&) = default;
};

}  // namespace cotenant::core
