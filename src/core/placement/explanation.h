// What a dry run of RunTask finds out: the whole reasoning of a placement, as values.
//
// Amounts: MiB, CPU units (1024 a vCPU); costs and terms in the unit that stands beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/command.h"
#include "core/placement/placement.h"
#include "core/placement/placement_policy.h"
#include "core/placement/placement_ranking.h"

namespace cotenant::core {

// NoFit: it would fit on an emptier instance. Infeasible: it could never run there.
enum class FitVerdict { kFits, kNoFit, kInfeasible };
std::string_view to_string(FitVerdict verdict);  // "FITS", "NO_FIT", "INFEASIBLE"

struct InstanceVerdict {
  std::string instance_id;
  FitVerdict verdict = FitVerdict::kNoFit;
  std::string reason;    // as of a refusal; empty: it fits
  std::string obstacle;  // what is in the way, in words
};

struct ReasonCount {
  std::string reason;
  std::string constraint;  // its own text; empty: the reason is no constraint
  std::int64_t no_fit = 0;
  std::int64_t infeasible = 0;
};

// Of the cluster's ACTIVE instances: each has failed one test, the first, or fits.
struct Feasibility {
  std::int64_t instances = 0;
  std::int64_t fits = 0;
  std::int64_t no_fit = 0;
  std::int64_t infeasible = 0;
  std::int64_t draining = 0;  // are not asked
  std::vector<ReasonCount> reasons;
  std::vector<InstanceVerdict>
      refusing;  // the first ones that do not fit, in order of registration
};

struct ExplainedGpu {
  std::size_t index = 0;
  std::string uuid;
  std::string model;
  SharingMode mode = SharingMode::kIdle;  // before
  std::int64_t total_mib = 0;
  std::int64_t left_mib = 0;  // before
};

// A place that the task could have, and what the ranking finds of it.
struct ExplainedPlace {
  std::string instance_id;
  std::vector<ExplainedGpu> gpus;
  std::int64_t free_cpu_units = 0;   // before
  std::int64_t free_memory_mib = 0;  // before
  std::optional<std::int64_t> cost;  // the least wins; nothing: the policy gives none
  std::string cost_unit;
  std::vector<PolicyTerm> terms;                         // of a policy
  std::vector<std::optional<std::int64_t>> stage_ranks;  // of the strategies, one each
};

// One of the tasks that were asked for.
struct ExplainedDecision {
  std::optional<ExplainedPlace> chosen;
  std::vector<ExplainedPlace> others;      // the runner-up first
  bool scored_all = true;                  // see PolicyEngine::has_scored_all
  std::vector<StageTrace> stages;          // of the strategies, one each
  std::optional<Feasibility> feasibility;  // of the first decision, and of one that is a refusal
  std::optional<PlacementRefusal> refusal;
};

// A task that is there, and what speaks for its place today, as if it were not there.
struct ExplainedTask {
  Task task;
  std::optional<ExplainedPlace> place;  // nothing: it holds none, or would not fit there today
  std::string misfit;                   // why it would not fit there today
};

struct Explanation {
  std::string cluster;
  TaskDefinitionPtr definition;
  bool registered = true;  // false: the definition came with the request
  std::string group;
  int count = 1;
  TaskNeed need;
  PlacementRules rules;  // of the call
  std::string policy;    // that ranks; empty: the strategies do
  bool policy_of_call = false;
  std::int64_t requests_learned = 0;  // by the cluster, before this one
  std::optional<ExplainedTask> task;
  std::vector<ExplainedDecision> decisions;  // up to the first refusal
};

}  // namespace cotenant::core
