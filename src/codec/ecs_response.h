// Core values to ECS's JSON. Spellings and members: ECS API reference. Any thread; the values are
// copies.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "codec/json.h"
#include "core/state.h"

namespace cotenant::codec {

struct ClusterCounts {
  int instances = 0;
  int running = 0;
  int pending = 0;
};

// Which of the members that ECS shows only where `include` asks for them.
struct Included {
  bool tags = false;
  bool statistics = false;  // of a cluster
};

Json encode_cluster(const base::ArnFormat& arns, const core::Cluster& cluster,
                    const ClusterCounts& counts, const Included& included = {});
// Without its tags: ECS shows them beside it.
Json encode_task_definition(const base::ArnFormat& arns, const core::TaskDefinition& definition);
Json encode_task(const base::ArnFormat& arns, const core::Task& task,
                 const core::TaskDefinition& definition, const Included& included = {});
Json encode_instance(const base::ArnFormat& arns, const core::Instance& instance,
                     const core::TaskCounts& counts, const Included& included = {});

// ECS: Attribute. An empty value is left out.
Json encode_attribute(const std::string& name, const std::string& value);

// ECS: Failure. An empty detail is left out.
Json encode_failure(const std::string& arn, const std::string& reason, const std::string& detail);

// The body of an error: {"__type": "...", "message": "..."}.
std::string encode_error(const base::Error& error);

}  // namespace cotenant::codec
