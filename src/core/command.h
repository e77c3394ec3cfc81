// What can be asked of the core, and what it answers. Everything that changes State is one of
// these.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "core/desired.h"
#include "core/instance.h"
#include "core/state.h"

namespace cotenant::core {

// A cluster that exists already is returned as it is.
struct CreateCluster {
  std::string name;
};

// Family, containers and document are given; the revision is the core's to choose.
struct RegisterTaskDefinition {
  TaskDefinition definition;
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
};

struct DisconnectInstance {
  std::string instance_id;
  std::int64_t epoch = 0;  // of the connection that ended; an older one is ignored
};

struct ObserveTasks {
  std::string instance_id;
  std::vector<TaskObservation> tasks;
};

// Drops stopped tasks and client tokens that are past their time.
struct Expire {};

using Command = std::variant<CreateCluster, RegisterTaskDefinition, RunTask, StopTask,
                             ConnectInstance, DisconnectInstance, ObserveTasks, Expire>;

struct NoReply {};
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
using Reply = std::variant<NoReply, ClusterReply, TaskDefinitionReply, RunTaskReply, TaskReply>;

}  // namespace cotenant::core
