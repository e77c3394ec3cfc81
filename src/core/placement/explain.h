// A dry run of RunTask: the same steps on the same state, each told, and then all undone.
//
// Given the state and the random numbers that a call of RunTask would get, the decisions are the very
// ones that it would make. Afterwards the state is as it was, to the last bit of what is stored, and no
// policy has learned or cached anything. Runs on the state's own thread; costs a look at every instance
// of the cluster for the first decision and for a refusal, beside the decisions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"
#include "core/placement/explanation.h"
#include "core/reducer.h"

namespace cotenant::core {

// More than one call of RunTask takes: as if it were called again and again.
inline constexpr int kExplainCountMax = 100;
// Copies times ACTIVE instances; the state's thread does nothing else meanwhile. A call of RunTask's size is
// taken in a cluster of 100,000.
inline constexpr std::size_t kExplainLooksMax = 1'000'000;

struct ExplainQuestion {
  RunTask run;  // count: 1 to kExplainCountMax; its client token plays no part
  // In place of a registered one that `run` names.
  std::optional<TaskDefinition> definition = {};
  // In place of both: a task that is there. Its definition, group and overrides count, and the policy of
  // its cluster (run.cluster); the constraints and strategies of its own call are not kept with it.
  std::string task_id = {};
  std::size_t instances = 10;  // how many at most are listed, of those that fit and of the others
  std::size_t looks = kExplainLooksMax;
};

// Errors: those of RunTask; kInvalidParameter, there is no such task, or these are more copies than `looks`
// allow. Fewer instances than asked for are ranked where that would be more.
base::Result<Explanation> explain(State& state, const ExplainQuestion& question,
                                  const Context& context);

}  // namespace cotenant::core
