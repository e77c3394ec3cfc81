// Asking a control plane about tasks, for the verbs.
#pragma once

#include <string>
#include <vector>

#include "cli/api_client.h"

namespace cotenant::cli {

// The tasks of these ARNs, in batches of the API's page size; those that are missing are left out.
base::Result<std::vector<codec::Json>> describe_tasks(const ApiClient& client,
                                                      const std::vector<std::string>& arns);

// Waits until every task's lastStatus is `status` or STOPPED. Errors: kTimeout after `timeout_s`.
base::Result<std::vector<codec::Json>> wait_for_status(const ApiClient& client,
                                                       const std::vector<std::string>& arns,
                                                       const std::string& status, int timeout_s);

// `ps` shows the first twelve digits of an id, so the beginning of one is enough here.
// ARNs pass as they are. Errors: kClient, too short or not unique.
base::Result<std::string> match_task(const std::vector<std::string>& arns, const std::string& name);
// The same among all tasks of the cluster that are known, stopped ones as well.
base::Result<std::string> resolve_task(const ApiClient& client, const std::string& name);

// Whether an instance that one of these tasks is on runs containers as plain processes. Also false when
// it cannot be told.
bool any_without_isolation(const ApiClient& client, const std::vector<codec::Json>& tasks);

// The rows of `ps` and `run`: one for each container.
std::string task_table(const std::vector<codec::Json>& tasks);

}  // namespace cotenant::cli
