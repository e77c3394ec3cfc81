// The openb GPU-cluster trace (Alibaba 2023): nodes and pods, as data for replays.
// Columns, from the trace's own description: nodes sn, cpu_milli, memory_mib, gpu, model; pods name,
// cpu_milli, memory_mib, num_gpu, gpu_milli (1000: a whole GPU), gpu_spec (models joined by '|').
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cotenant::replay {

struct TraceNode {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  std::string model;
};

struct TracePod {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  std::int64_t gpu_milli = 0;  // of each
  std::string models;          // empty: any

  bool is_share() const { return gpus == 1 && gpu_milli < 1000; }
  std::int64_t demand_milli() const { return gpus * gpu_milli; }
};

// In the order of the files.
struct Trace {
  std::vector<TraceNode> nodes;
  std::vector<TracePod> pods;
};

// Errors name file, line and column.
base::Result<Trace> read_trace(const std::string& nodes_path, const std::string& pods_path);

// MiB of a GPU of that model, as the trace's publishers have it (G1 to G3 stand for parts that they do
// not name). Nothing: the model is not known.
std::optional<std::int64_t> model_mib(std::string_view model);

}  // namespace cotenant::replay
