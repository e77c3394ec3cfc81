// The operations that cotenant offers, in one table: the name, and the function that answers.
//
// Adding an operation is a function in one of the api_*.cpp files and a row here. Bodies have
// passed
// codec::check_input before a function sees them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "codec/json.h"
#include "server/core_loop.h"
#include "server/metrics.h"

namespace cotenant::server {

class AgentAccess;
class AgentHub;

class StreamHub;

struct ApiContext {
  CoreLoop& loop;
  const base::ArnFormat& arns;
  Metrics& metrics;
  AgentAccess* agents = nullptr;  // null: no join tokens here
  AgentHub* hub = nullptr;        // as above
  StreamHub* streams = nullptr;
};

struct ApiReply {
  codec::Json body;
  std::vector<std::string> warnings;
};

// Blocks until the answer is durable. Any thread.
using ApiFunction = base::Result<ApiReply> (*)(const ApiContext&, const codec::Json& body);

// Null when ECS's operation of that name is not offered.
ApiFunction find_ecs_operation(std::string_view name);
// cotenant's own operations (`Cotenant.<name>`).
ApiFunction find_own_operation(std::string_view name);
// For the refusal of the others: "CreateCluster, DescribeClusters, ...".
std::string offered_operations();

}  // namespace cotenant::server
