#include <fmt/format.h>

#include "cli/api_client.h"
#include "cli/client_verbs.h"
#include "cli/exit_code.h"
#include "cli/task_queries.h"

namespace cotenant::cli {

using codec::Json;

int ps_verb(const ClientOptions& options, bool all) {
  auto client = ApiClient::create(options);
  if (!client) return report(client.error());
  // A task that is asked to stop has desiredStatus STOPPED at once, but runs until it has stopped.
  std::vector<std::string> arns;
  for (const char* desired : {"RUNNING", "STOPPED"}) {
    auto page = client->list("ListTasks", "taskArns", Json::object({{"desiredStatus", desired}}));
    if (!page) return report(page.error());
    arns.insert(arns.end(), page->begin(), page->end());
  }
  auto tasks = describe_tasks(*client, arns);
  if (!tasks) return report(tasks.error());
  if (!all) {
    std::erase_if(*tasks,
                  [](const Json& task) { return task.string_or("lastStatus", "") == "STOPPED"; });
  }
  if (options.json) {
    fmt::print(
        "{}\n",
        Json::object({{"tasks", Json(Json::Array(tasks->begin(), tasks->end()))}}).dump_pretty());
  } else if (tasks->empty()) {
    fmt::print("no tasks{} in cluster {}\n", all ? "" : " running", options.cluster);
  } else {
    fmt::print("{}", task_table(*tasks));
    if (any_without_isolation(*client, *tasks)) {
      fmt::print("Some of these run as plain processes of their machine: no isolation.\n");
    }
  }
  return kExitOk;
}

}  // namespace cotenant::cli
