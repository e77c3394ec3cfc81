// Whom a process of the `process` runtime runs as, and within which limits, from a task definition's
// words. Reads the host's user database. Errors: kClient, naming the member.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "adapters/process_record.h"
#include "base/result.h"
#include "core/container_host.h"

namespace cotenant::adapters {

struct FoundUser {
  std::optional<ProcessUser> change;  // none: it is the agent's own
  std::string home;
};

// "user", "user:group", names or numbers; empty: the agent's own.
base::Result<FoundUser> find_process_user(const std::string& text);

base::Result<std::vector<ProcessLimit>> process_limits(const std::vector<core::Ulimit>& ulimits);

}  // namespace cotenant::adapters
