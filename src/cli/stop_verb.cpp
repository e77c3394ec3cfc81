#include <fmt/format.h>

#include "cli/api_client.h"
#include "cli/client_verbs.h"
#include "cli/exit_code.h"
#include "cli/table.h"
#include "cli/task_queries.h"

namespace cotenant::cli {
namespace {

using codec::Json;

// Longer than the default stopTimeout, so that a program that ignores SIGTERM is waited for as
// well.
constexpr int kStopWaitSeconds = 180;

}  // namespace

int stop_verb(const ClientOptions& options, const StopOptions& stop) {
  auto client = ApiClient::create(options);
  if (!client) return report(client.error());
  auto running = client->list("ListTasks", "taskArns", Json::object());
  if (!running) return report(running.error());
  std::vector<std::string> names = stop.all ? *running : stop.tasks;
  std::vector<std::string> stopped;
  Json replies = Json::array();
  int exit_code = kExitOk;
  for (const std::string& name : names) {
    auto arn = match_task(*running, name);
    Json body = Json::object();
    if (arn) body.set("task", *arn);
    if (!stop.reason.empty()) body.set("reason", stop.reason);
    auto reply = arn ? client->call("StopTask", std::move(body))
                     : base::Result<Json>(base::fail(arn.error()));
    if (!reply) {
      exit_code = report(reply.error());
      continue;
    }
    const Json* task = reply->find("task");
    stopped.push_back(task == nullptr ? *arn : task->string_or("taskArn", *arn));
    replies.push(task == nullptr ? Json::object() : *task);
  }
  if (stop.wait && !stopped.empty()) {
    auto tasks = wait_for_status(*client, stopped, "STOPPED", kStopWaitSeconds);
    if (!tasks) return report(tasks.error());
    replies = Json(Json::Array(tasks->begin(), tasks->end()));
  }
  if (options.json) {
    fmt::print("{}\n", Json::object({{"tasks", std::move(replies)}}).dump_pretty());
  } else {
    for (const std::string& arn : stopped) {
      fmt::print("{} {}\n", stop.wait ? "stopped" : "stopping", short_id(arn));
    }
    if (names.empty()) fmt::print("no tasks to stop\n");
  }
  return exit_code;
}

}  // namespace cotenant::cli
