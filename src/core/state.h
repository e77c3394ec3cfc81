// All that the control plane knows. One thread owns it; `apply` (reducer.h) is its only writer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/desired.h"
#include "core/instance.h"
#include "core/placement/cluster_placement.h"
#include "core/placement/workload.h"
#include "core/record_ref.h"
#include "core/tags.h"
#include "core/task.h"
#include "core/task_definition.h"

namespace cotenant::core {

// Cluster.settings: name and value. "cotenant.placementPolicy" is read by placement.
inline constexpr const char* kPlacementPolicySetting = "cotenant.placementPolicy";

struct Cluster {
  std::string name;
  base::TimeMs created_at_ms = 0;
  // ECS: a deleted cluster is INACTIVE and can still be described for some time. 0: it is ACTIVE.
  base::TimeMs deleted_at_ms = 0;
  Tags tags = {};
  std::map<std::string, std::string> settings = {};

  bool active() const { return deleted_at_ms == 0; }
};
std::string_view placement_policy(const Cluster& cluster);

struct TaskDefinitionFamily {
  // Immutable, so that readers on other threads may keep one.
  std::map<std::int64_t, std::shared_ptr<const TaskDefinition>> revisions;
  // The highest revision that was ever deleted for good: numbers are not used twice.
  std::int64_t last_deleted_revision = 0;
};

// One of ECS's account settings, as it was put for a principal. Stored and shown; without effect.
struct AccountSetting {
  std::string name;
  std::string principal_arn;  // empty: the account itself
  std::string value;
};
using AccountSettingKey = std::pair<std::string, std::string>;  // name, principal

// ECS: Failure. `instance_id` may be empty.
struct TaskFailure {
  std::string instance_id;
  std::string reason;
  std::string detail;
};

// What a clientToken answered, so that a repeated call gets the same answer.
struct ClientToken {
  std::string key;         // cluster and token
  std::string parameters;  // a digest of the call's other members
  base::TimeMs created_at_ms = 0;
  std::vector<std::string> task_ids;
  std::vector<TaskFailure> failures;
};

struct State {
  std::map<std::string, Cluster> clusters;
  std::map<std::string, TaskDefinitionFamily> families;
  std::map<std::string, Instance> instances;
  std::map<std::string, Task> tasks;
  std::map<std::string, ClientToken> client_tokens;
  std::map<AccountSettingKey, AccountSetting> account_settings;

  std::int64_t next_instance_number = 1;
  std::map<std::string, Workload> workloads;  // by cluster

  // Not stored: kept in step with `instances` by the functions below.
  std::map<std::string, ClusterPlacement> placements;  // by cluster
};

using TaskDefinitionPtr = std::shared_ptr<const TaskDefinition>;

// Null where there is none. latest_definition: the latest ACTIVE one.
TaskDefinitionPtr find_definition(const State& state, const std::string& family,
                                  std::int64_t revision);
TaskDefinitionPtr latest_definition(const State& state, const std::string& family);
// The definition of a task that exists; a task never outlives its definition.
TaskDefinitionPtr definition_of(const State& state, const Task& task);

// Errors: kClusterNotFound, also where the cluster is INACTIVE.
base::Status require_cluster(const State& state, const std::string& name);

// The cluster's ACTIVE instances in order of registration.
std::vector<const Instance*> active_instances(const State& state, const std::string& cluster);
bool has_active_instance(const State& state, const std::string& cluster);

// Adds an instance that is not known yet. Its node in the fleet comes after all others.
Instance& add_instance(State& state, Instance instance);
// To be called after every change of an instance that placement looks at: status, connection,
// registration, reservations, health of a GPU. reserve() and release() do it themselves.
void instance_changed(State& state, Instance& instance);
// Forgets an instance that holds no task.
void remove_instance(State& state, const std::string& id);
// Builds `placements` from the instances; after a load, before the first reserve().
void rebuild_placements(State& state);
// The tags of a cluster, task definition, instance or task; null where there is no such resource, or
// where it is in another cluster.
const Tags* find_tags(const State& state, const RecordRef& resource, const std::string& cluster);

// What the agent should do about a task that holds its reservation.
DesiredTask desired_task(const State& state, const Task& task);
// Everything the agent of this instance should run or stop. Tasks that are STOPPED are not among
// them.
std::vector<DesiredTask> desired_tasks(const State& state, const std::string& instance_id);

// Takes what the task needs on its instance, or gives it back. A task that holds a reservation has
// taken it exactly once; after a load from the store, reserve() is called for each such task.
void reserve(State& state, const Task& task);
void release(State& state, const Task& task);

// The part of reserve() that changes when the engine tells which ports it has chosen.
void hold_ports(State& state, const Task& task);

// Counts for DescribeClusters and DescribeContainerInstances.
struct TaskCounts {
  int running = 0;
  int pending = 0;
};
TaskCounts count_tasks(const State& state, const Instance& instance);

}  // namespace cotenant::core
