#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "cli/api_client.h"
#include "cli/client_verbs.h"
#include "cli/definition_file.h"
#include "cli/exit_code.h"
#include "cli/task_queries.h"

namespace cotenant::cli {
namespace {

using codec::Json;

constexpr int kStartWaitSeconds = 120;

// A file is registered first; everything else is the name of a definition.
base::Result<std::string> definition_to_run(const ApiClient& client, const std::string& what) {
  if (!names_file(what)) return what;
  auto definition = read_json_file(what);
  if (!definition) return base::fail(definition.error());
  auto reply = client.call("RegisterTaskDefinition", std::move(*definition));
  if (!reply) return base::fail(reply.error());
  const Json* registered = reply->find("taskDefinition");
  const std::string arn =
      registered == nullptr ? "" : registered->string_or("taskDefinitionArn", "");
  if (!client.options().json) fmt::print("registered {}\n", arn.substr(arn.rfind('/') + 1));
  return arn;
}

void print_failures(const Json& reply) {
  for (const Json& failure : reply.array_or_empty("failures")) {
    fmt::print(stderr, "not placed: {}: {}\n", failure.string_or("reason", ""),
               failure.string_or("detail", ""));
  }
}

std::vector<std::string> task_arns(const Json& reply) {
  std::vector<std::string> arns;
  for (const Json& task : reply.array_or_empty("tasks"))
    arns.push_back(task.string_or("taskArn", ""));
  return arns;
}

// After a wait: a task that could not be started. One whose program has ended meanwhile has not
// failed.
bool any_failed(const Json& reply) {
  const Json::Array& tasks = reply.array_or_empty("tasks");
  return std::any_of(tasks.begin(), tasks.end(), [](const Json& task) {
    return task.string_or("stopCode", "") == "TaskFailedToStart";
  });
}

}  // namespace

int run_verb(const ClientOptions& options, const RunOptions& run) {
  auto client = ApiClient::create(options);
  if (!client) return report(client.error());
  auto definition = definition_to_run(*client, run.what);
  if (!definition) return report(definition.error());

  Json body = Json::object({{"taskDefinition", *definition}, {"count", run.count}});
  if (!run.started_by.empty()) body.set("startedBy", run.started_by);
  auto reply = client->call("RunTask", std::move(body));
  if (!reply) return report(reply.error());
  const std::vector<std::string> arns = task_arns(*reply);
  std::optional<base::Error> wait_error;
  if (run.wait && !arns.empty()) {
    auto tasks = wait_for_status(*client, arns, "RUNNING", kStartWaitSeconds);
    if (tasks) {
      reply->set("tasks", Json(Json::Array(tasks->begin(), tasks->end())));
    } else {
      wait_error = tasks.error();
    }
  }
  // Whatever became of the wait: what was started must be known, so that it can be stopped.
  if (options.json) {
    fmt::print("{}\n", reply->dump_pretty());
  } else if (!arns.empty()) {
    fmt::print("{}", task_table(reply->array_or_empty("tasks")));
  }
  print_failures(*reply);
  if (wait_error) return report(*wait_error);
  const bool all_placed = reply->array_or_empty("failures").empty();
  return all_placed && !(run.wait && any_failed(*reply)) ? kExitOk : kExitRefused;
}

}  // namespace cotenant::cli
