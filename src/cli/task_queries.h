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

// The rows of `ps` and `run`: one for each container.
std::string task_table(const std::vector<codec::Json>& tasks);

}  // namespace cotenant::cli
