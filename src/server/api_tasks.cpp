// RunTask, StartTask, StopTask, DescribeTasks, ListTasks.
#include <fmt/format.h>

#include <optional>

#include "codec/ecs_request.h"
#include "codec/ecs_response.h"
#include "codec/gpu_rules.h"
#include "server/api_functions.h"
#include "server/include.h"
#include "server/paging.h"

namespace cotenant::server::api {
namespace {

// A copy of a task for encoding off the loop's thread.
struct TaskView {
  core::Task task;
  core::TaskDefinitionPtr definition;
};

std::optional<TaskView> view_task(const core::State& state, const std::string& id) {
  const auto found = state.tasks.find(id);
  if (found == state.tasks.end()) return std::nullopt;
  return TaskView{found->second, core::definition_of(state, found->second)};
}

Json encode(const ApiContext& context, const TaskView& view, const codec::Included& included) {
  return codec::encode_task(context.arns, view.task, *view.definition, included);
}

// What RunTask or StartTask has made, copied on the loop's thread.
struct Started {
  std::vector<TaskView> tasks;
  std::vector<core::TaskFailure> failures;
  std::vector<std::string> forgotten;  // tasks of a repeated call that are past their time
};

Started view_started(const core::Reply& reply, const core::State& state) {
  const auto& ran = std::get<core::RunTaskReply>(reply);
  Started result;
  result.failures = ran.failures;
  for (const std::string& id : ran.task_ids) {
    if (auto view = view_task(state, id)) {
      result.tasks.push_back(std::move(*view));
    } else {
      result.forgotten.push_back(id);
    }
  }
  return result;
}

ApiReply encode_started(const ApiContext& context, const std::string& cluster,
                        const Started& started, std::vector<std::string> warnings) {
  Json tasks = Json::array();
  for (const TaskView& view : started.tasks) tasks.push(encode(context, view, {true, false}));
  Json failures = Json::array();
  for (const core::TaskFailure& failure : started.failures) {
    const std::string arn = failure.instance_id.empty()
                                ? std::string()
                                : context.arns.container_instance(cluster, failure.instance_id);
    failures.push(codec::encode_failure(arn, failure.reason, failure.detail));
  }
  for (const std::string& id : started.forgotten) {
    failures.push(codec::encode_failure(
        context.arns.task(cluster, id), "MISSING",
        "the first call with this clientToken started this task; it has stopped since, and is not "
        "kept any more. Use a new token to start another one"));
  }
  context.metrics.count_placed(started.tasks.size());
  for (const core::TaskFailure& failure : started.failures) {
    context.metrics.count_not_placed(failure.reason, 1);
  }
  if (!started.tasks.empty()) {
    const TaskView& first = started.tasks.front();
    const auto lost = codec::override_environment_warnings(*first.definition, first.task.overrides);
    warnings.insert(warnings.end(), lost.begin(), lost.end());
  }
  return {Json::object({{"tasks", std::move(tasks)}, {"failures", std::move(failures)}}),
          std::move(warnings)};
}

}  // namespace

Result<ApiReply> run_task(const ApiContext& context, const Json& body) {
  auto decoded = codec::decode_run_task(body);
  if (!decoded) return base::fail(decoded.error());
  const std::string cluster = decoded->value.cluster;
  auto started = context.loop.apply<Started>(std::move(decoded->value), view_started);
  if (!started) return base::fail(started.error());
  return encode_started(context, cluster, *started, std::move(decoded->warnings));
}

Result<ApiReply> start_task(const ApiContext& context, const Json& body) {
  auto decoded = codec::decode_start_task(body);
  if (!decoded) return base::fail(decoded.error());
  const std::string cluster = decoded->value.launch.cluster;
  auto started = context.loop.apply<Started>(std::move(decoded->value), view_started);
  if (!started) return base::fail(started.error());
  return encode_started(context, cluster, *started, std::move(decoded->warnings));
}

Result<ApiReply> stop_task(const ApiContext& context, const Json& body) {
  auto command = codec::decode_stop_task(body);
  if (!command) return base::fail(command.error());
  auto view = context.loop.apply<std::optional<TaskView>>(
      std::move(*command), [](const core::Reply& reply, const core::State& state) {
        return view_task(state, std::get<core::TaskReply>(reply).task_id);
      });
  if (!view) return base::fail(view.error());
  return ApiReply{Json::object({{"task", encode(context, **view, {true, false})}}), {}};
}

Result<ApiReply> describe_tasks(const ApiContext& context, const Json& body) {
  auto cluster = codec::decode_cluster(body);
  if (!cluster) return base::fail(cluster.error());
  auto refs = codec::decode_refs(body, "tasks", "task");
  if (!refs) return base::fail(refs.error());
  struct Found {
    base::Status status;
    std::vector<std::optional<TaskView>> tasks;  // one for each reference
  };
  auto found = context.loop.read<Found>([&](const core::State& state) {
    Found result;
    result.status = core::require_cluster(state, *cluster);
    for (const base::ResourceRef& ref : *refs) {
      auto view = view_task(state, ref.id);
      const bool elsewhere =
          view && (view->task.cluster != *cluster || (ref.cluster && *ref.cluster != *cluster));
      result.tasks.push_back(elsewhere ? std::nullopt : std::move(view));
    }
    return result;
  });
  if (!found) return base::fail(found.error());
  if (!found->status) return base::fail(found->status.error());
  Json tasks = Json::array();
  Json failures = Json::array();
  for (std::size_t i = 0; i < refs->size(); ++i) {
    if (found->tasks[i]) {
      tasks.push(encode(context, *found->tasks[i], decode_include(body)));
    } else {
      failures.push(
          codec::encode_failure(context.arns.task(*cluster, (*refs)[i].id), "MISSING", ""));
    }
  }
  return ApiReply{Json::object({{"tasks", std::move(tasks)}, {"failures", std::move(failures)}}),
                  {}};
}

Result<ApiReply> list_tasks(const ApiContext& context, const Json& body) {
  auto query = codec::decode_list_tasks(body);
  if (!query) return base::fail(query.error());
  struct Listed {
    base::Status status;
    KeyPage page;
  };
  auto listed = context.loop.read<Listed>([&](const core::State& state) {
    Listed result;
    result.status = core::require_cluster(state, query->cluster);
    if (!result.status || query->none) return result;
    result.page =
        page_of(state.tasks, query->page, [&](const std::string&, const core::Task& task) {
          return task.cluster == query->cluster && task.desired_status == query->desired_status &&
                 (!query->instance_id || task.instance_id == *query->instance_id) &&
                 (!query->family || task.family == *query->family) &&
                 (!query->service_name || task.group == "service:" + *query->service_name) &&
                 (!query->started_by || task.started_by == *query->started_by);
        });
    return result;
  });
  if (!listed) return base::fail(listed.error());
  if (!listed->status) return base::fail(listed->status.error());
  Json arns = Json::array();
  for (const std::string& id : listed->page.keys) arns.push(context.arns.task(query->cluster, id));
  Json reply = Json::object({{"taskArns", std::move(arns)}});
  if (!listed->page.next_token.empty()) reply.set("nextToken", listed->page.next_token);
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
