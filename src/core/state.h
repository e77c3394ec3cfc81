// All that the control plane knows. One thread owns it; `apply` (reducer.h) is its only writer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/cluster_placement.h"
#include "core/desired.h"
#include "core/instance.h"
#include "core/task.h"
#include "core/task_definition.h"

namespace cotenant::core {

struct Cluster {
  std::string name;
  base::TimeMs created_at_ms = 0;
};

struct TaskDefinitionFamily {
  // Immutable, so that readers on other threads may keep one.
  std::map<std::int64_t, std::shared_ptr<const TaskDefinition>> revisions;
};

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

  std::int64_t next_instance_number = 1;

  // Not stored: kept in step with `instances` by the functions below.
  std::map<std::string, ClusterPlacement> placements;  // by cluster
};

using TaskDefinitionPtr = std::shared_ptr<const TaskDefinition>;

// Null where there is none.
TaskDefinitionPtr find_definition(const State& state, const std::string& family,
                                  std::int64_t revision);
TaskDefinitionPtr latest_definition(const State& state, const std::string& family);
// The definition of a task that exists; a task never outlives its definition.
TaskDefinitionPtr definition_of(const State& state, const Task& task);

// Errors: kClusterNotFound.
base::Status require_cluster(const State& state, const std::string& name);

// The cluster's ACTIVE instances in order of registration.
std::vector<const Instance*> active_instances(const State& state, const std::string& cluster);

// Adds an instance that is not known yet. Its node in the fleet comes after all others.
Instance& add_instance(State& state, Instance instance);
// To be called after every change of an instance that placement looks at: status, connection,
// registration, reservations, health of a GPU. reserve() and release() do it themselves.
void instance_changed(State& state, Instance& instance);
// Forgets an instance that holds no task.
void remove_instance(State& state, const std::string& id);
// Builds `placements` from the instances; after a load, before the first reserve().
void rebuild_placements(State& state);

// What the agent should do about a task that holds its reservation.
DesiredTask desired_task(const State& state, const Task& task);
// Everything the agent of this instance should run or stop. Tasks that are STOPPED are not among
// them.
std::vector<DesiredTask> desired_tasks(const State& state, const std::string& instance_id);

// Takes what the task needs on its instance, or gives it back. A task that holds a reservation has
// taken it exactly once; after a load from the store, reserve() is called for each such task.
void reserve(State& state, const Task& task);
void release(State& state, const Task& task);

// Counts for DescribeClusters and DescribeContainerInstances.
struct TaskCounts {
  int running = 0;
  int pending = 0;
};
TaskCounts count_tasks(const State& state, const Instance& instance);

}  // namespace cotenant::core
