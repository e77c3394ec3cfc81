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
// An empty or very short beginning, say of an unset shell variable, must not name a task.
constexpr std::size_t kDigitsMin = 4;

// `ps` shows the first twelve digits of an id, so the beginning of one is enough here.
base::Result<std::string> resolve(const std::vector<std::string>& running,
                                  const std::string& name) {
  if (name.rfind("arn:", 0) == 0) return name;
  if (name.size() < kDigitsMin) {
    return base::fail(
        base::ErrorCode::kClient,
        fmt::format("'{}': give at least the first {} digits of a task's id", name, kDigitsMin));
  }
  std::vector<std::string> matches;
  for (const std::string& arn : running) {
    if (arn.substr(arn.rfind('/') + 1).rfind(name, 0) == 0) matches.push_back(arn);
  }
  if (matches.size() > 1) {
    return base::fail(
        base::ErrorCode::kClient,
        fmt::format("{}: {} tasks begin like this; give more digits", name, matches.size()));
  }
  // An unknown one goes to the server as it is: it says what is wrong.
  return matches.empty() ? name : matches.front();
}

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
    auto arn = resolve(*running, name);
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
