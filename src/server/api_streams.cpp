// cotenant's own: logs of, and programs in, a task's containers.
#include <fmt/format.h>

#include <optional>

#include "base/ids.h"
#include "codec/ecs_request.h"
#include "codec/stream_message.h"
#include "server/api_functions.h"
#include "server/stream_hub.h"

namespace cotenant::server::api {
namespace {

using base::ErrorCode;
using base::fail;

struct StreamTarget {
  std::string instance_id;
  std::string container_id;
};

std::string names_of(const core::Task& task) {
  std::string names;
  for (const core::TaskContainer& container : task.containers) {
    names += (names.empty() ? "" : ", ") + container.name;
  }
  return names;
}

Result<StreamTarget> find_target(const core::State& state, const std::string& cluster,
                                 const std::string& task_id, const std::string& container_name,
                                 codec::StreamKind kind) {
  const auto found = state.tasks.find(task_id);
  if (found == state.tasks.end() || found->second.cluster != cluster) {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("task: '{}' was not found in cluster '{}'", task_id, cluster));
  }
  const core::Task& task = found->second;
  const core::TaskContainer* chosen = nullptr;
  for (const core::TaskContainer& container : task.containers) {
    const bool wanted =
        container_name.empty() ? task.containers.size() == 1 : container.name == container_name;
    if (wanted) chosen = &container;
  }
  if (chosen == nullptr) {
    return fail(ErrorCode::kInvalidParameter,
                container_name.empty()
                    ? fmt::format("container: name one of {}", names_of(task))
                    : fmt::format("container: '{}' is no container of the task, which has {}",
                                  container_name, names_of(task)));
  }
  if (kind == codec::StreamKind::kExec && chosen->status != core::ContainerStatus::kRunning) {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("container: '{}' is {}; a program runs in a RUNNING one only",
                            chosen->name, core::to_string(chosen->status)));
  }
  const auto instance = state.instances.find(task.instance_id);
  if (instance == state.instances.end() || !instance->second.agent_connected) {
    return fail(ErrorCode::kClient,
                fmt::format("the agent of instance {} is not connected", task.instance_id));
  }
  return StreamTarget{task.instance_id, chosen->id};
}

}  // namespace

Result<ApiReply> open_stream(const ApiContext& context, const Json& body) {
  if (context.streams == nullptr) {
    return fail(ErrorCode::kUnsupportedFeature, "this server serves no streams");
  }
  auto request = codec::decode_stream_request(body);
  if (!request) return fail(request.error());
  const auto cluster = codec::decode_cluster(body);
  if (!cluster) return fail(cluster.error());
  const auto task = base::parse_resource_ref("task", body.string_or("task", ""));
  if (!task) return fail(task.error().code, "task: " + task.error().message);
  if (task->cluster && *task->cluster != *cluster) {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("task: is of cluster '{}', not of '{}'", *task->cluster, *cluster));
  }
  const std::string container = body.string_or("container", "");
  auto target = context.loop.read<Result<StreamTarget>>([&](const core::State& state) {
    return find_target(state, *cluster, task->id, container, request->kind);
  });
  if (!target) return fail(target.error());
  if (!*target) return fail(target->error());
  auto id =
      context.streams->open((*target)->instance_id, (*target)->container_id, std::move(*request));
  if (!id) return fail(id.error());
  return ApiReply{Json::object({{"streamId", *id}}), {}};
}

}  // namespace cotenant::server::api
