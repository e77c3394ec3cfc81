// What a cluster has learned of its requests, as records: the counters in one, each shape in its own,
// so that a RunTask rewrites two small documents. A shape's record says at which training and halving
// it was written; what has happened since is applied when it is read.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "codec/json.h"
#include "core/state.h"

namespace cotenant::codec {

Json encode_workload(const core::Workload& workload);
Json encode_workload_shape(const core::Workload& workload, std::size_t index);

class WorkloadRecords {
 public:
  // Errors: kProtocol, naming the member.
  base::Status add_counters(const std::string& cluster, const Json& json);
  base::Status add_shape(const std::string& cluster, std::int64_t index, const Json& json);
  // Puts them into the state, or says what does not go together.
  base::Status restore(core::State& state) const;

 private:
  struct Head {
    core::Workload::Counters counters;
    core::TrainingSet fleet;
  };
  struct StoredShape {
    core::Workload::Shape shape;
    std::int64_t trainings = 0;
    std::int64_t halvings = 0;
  };
  std::map<std::string, Head> heads_;
  std::map<std::string, std::map<std::int64_t, StoredShape>> shapes_;
};

}  // namespace cotenant::codec
