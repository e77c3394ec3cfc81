// What can be asked of the core, and what it answers. Everything that changes State is one of
// these.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "core/desired.h"
#include "core/instance.h"
#include "core/placement/placement_rules.h"
#include "core/record_ref.h"
#include "core/state.h"

namespace cotenant::core {

// A cluster that exists already is returned as it is; one that was deleted is made again.
struct CreateCluster {
  std::string name;
  Tags tags = {};
  std::map<std::string, std::string> settings = {};
};

// Sets these settings; others stay.
struct UpdateClusterSettings {
  std::string cluster;
  std::map<std::string, std::string> settings;
};

// Refused while it has container instances or tasks. It stays as INACTIVE for a while.
struct DeleteCluster {
  std::string name;
};

// Family, containers and document are given; the revision is the core's to choose.
struct RegisterTaskDefinition {
  TaskDefinition definition;
};

struct DeregisterTaskDefinition {
  base::TaskDefinitionRef definition;
};

// INACTIVE revisions become DELETE_IN_PROGRESS, and go when no task refers to them any more.
struct DeleteTaskDefinitions {
  std::vector<base::TaskDefinitionRef> definitions;
};

// ECS: propagateTags of RunTask and StartTask, and enableECSManagedTags.
struct TagPolicy {
  bool propagate_from_definition = false;
  bool managed = false;
};

struct RunTask {
  std::string cluster;
  base::TaskDefinitionRef definition;
  int count = 1;
  std::string group;  // empty: "family:<family>", as ECS does
  std::string started_by;
  std::vector<ContainerOverride> overrides;
  std::string client_token;       // empty: none
  std::string parameters_digest;  // of all members but the token
  PlacementRules placement = {};
  Tags tags = {};
  TagPolicy tag_policy;
};

// One task on each of the instances that are named, placed by nobody else. `launch.count` and the
// token are not used.
struct StartTask {
  RunTask launch;
  std::vector<std::string> instance_ids;
};

struct StopTask {
  std::string cluster;
  std::string task_id;
  std::string reason;  // empty: ECS's own words
};

// An agent has said hello: it joins, or is back. `epoch` grows with each of its connections.
struct ConnectInstance {
  InstanceRegistration registration;
  std::int64_t epoch = 0;
  // Tasks of which the agent still sees containers that run.
  std::vector<std::string> running_task_ids = {};
};

struct DisconnectInstance {
  std::string instance_id;
  std::int64_t epoch = 0;  // of the connection that ended; an older one is ignored
};

// ACTIVE and DRAINING only. A draining instance gets no new tasks; those that run go on.
struct UpdateInstancesState {
  std::string cluster;
  std::vector<std::string> instance_ids;
  InstanceStatus status = InstanceStatus::kActive;
};

// With `force` the tasks that are there are given up: they are STOPPED and hold nothing any more. The
// agent must have stopped their containers before the instance may join again.
struct DeregisterInstance {
  std::string cluster;
  std::string instance_id;
  bool force = false;
};

// `resource` is a cluster, a task definition, a container instance or a task.
struct TagResource {
  RecordRef resource;
  std::string cluster;  // of a task or an instance, as its ARN says
  Tags tags = {};
  std::vector<std::string> removed_keys = {};
};

// An empty value removes the setting.
struct PutAccountSetting {
  AccountSetting setting;
};

// An attribute of an instance, as an operator gives it.
struct TargetAttribute {
  std::string instance_id;
  std::string name;
  std::string value;
};

// All of them, or none. ECS: a name that is there already gets the new value.
struct PutAttributes {
  std::string cluster;
  std::vector<TargetAttribute> attributes;
};

// By name; the values do not matter. One that is not there is no error.
struct DeleteAttributes {
  std::string cluster;
  std::vector<TargetAttribute> attributes;
};

struct ObserveTasks {
  std::string instance_id;
  std::vector<TaskObservation> tasks;
  // Of the connection that reports: one that is not the present one is not believed. None: whoever
  // speaks for the instance.
  std::optional<std::int64_t> epoch = {};
};

// Drops stopped tasks and client tokens that are past their time.
struct Expire {};

using Command =
    std::variant<CreateCluster, RegisterTaskDefinition, RunTask, StopTask, ConnectInstance,
                 DisconnectInstance, ObserveTasks, Expire, DeleteCluster, DeregisterTaskDefinition,
                 DeleteTaskDefinitions, StartTask, UpdateInstancesState, DeregisterInstance,
                 TagResource, PutAccountSetting, UpdateClusterSettings, PutAttributes,
                 DeleteAttributes>;

struct NoReply {};
struct ConnectReply {
  // Not empty: the instance has not joined, because containers run on it that nothing is reserved for.
  // Its agent must stop everything first. Why, in words.
  std::string stop_first;
};
struct ClusterReply {
  std::string name;
};
struct TaskDefinitionReply {
  std::string family;
  std::int64_t revision = 0;
};
struct RunTaskReply {
  std::vector<std::string> task_ids;
  std::vector<TaskFailure> failures;
};
struct TaskReply {
  std::string task_id;
};
// What was refused of a call that is carried out item by item; the others are done.
struct ItemsReply {
  struct Failure {
    std::size_t item = 0;
    std::string reason;
    std::string detail;
  };
  std::vector<Failure> failures;
};
struct AccountSettingReply {
  AccountSetting setting;
};
struct BoundedReply {
  bool more = false;  // it stopped at its bound; the same command again goes on
};
using Reply = std::variant<NoReply, ConnectReply, ClusterReply, TaskDefinitionReply, RunTaskReply,
                           TaskReply, ItemsReply, AccountSettingReply, BoundedReply>;

}  // namespace cotenant::core
