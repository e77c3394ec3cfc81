// Replays a trace through the placement engine, by the protocol that was published with it.
//
// Fill-up (FGD, USENIX ATC '23): all pods in an order shuffled by the seed, then pods drawn again until
// their demand passes `ratio` of the GPUs; nothing leaves; a pod that fits nowhere is dropped.
// Churn: 45,000 pods drawn, exponential lifetimes for an offered load of `rho`; the last 25,000 count.
// Nodes are shuffled by the seed, too: ties go to the first. The same seed gives the same digits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "replay/openb_trace.h"

namespace cotenant::replay {

// How a pod's per-mille of a GPU becomes MiB.
struct GpuSizes {
  std::optional<std::int64_t> gpu_mib;  // every GPU has so many; a pod asks its part of them
  std::optional<std::int64_t>
      reference_mib;  // GPUs have their model's size; a pod asks its part of this
  // Neither: per-mille it is, every GPU has 1000.
};

struct FillUpResult {
  static constexpr std::array<double, 8> kLevels = {0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.3};
  int events = 0;
  int failed = 0;
  std::array<double, 8>
      unallocated_at{};    // % when so much had arrived; the last level's is not shown
  double unallocated = 0;  // % at the end
};

struct ChurnResult {
  int blocked_requests = 0;
  double blocked = 0;      // % of requests
  double blocked_gpu = 0;  // % of the GPU demand
  double unallocated = 0;  // mean %
};

// Names of policies as publications have them ("TightGpu", "Balanced") or as cotenant's settings
// ("tight"). Errors: kInvalidParameter with the names there are.
struct ReplayPolicy {
  std::string shown;         // in results
  std::string engine;        // core::placement_policy_names()
  bool knows_trace = false;  // is given the whole trace's shapes in advance, as published
};
base::Result<ReplayPolicy> find_replay_policy(std::string_view name);

class Replay {
 public:
  // Errors: a size is missing for a model, or is out of range.
  static base::Result<Replay> make(Trace trace, const GpuSizes& sizes);

  // Small pods on a large fleet would be more arrivals than memory holds. Errors: so many that
  // fill_up() would not take them.
  base::Status check_ratio(double ratio) const;
  FillUpResult fill_up(const ReplayPolicy& policy, std::uint64_t seed, double ratio) const;
  ChurnResult churn(const ReplayPolicy& policy, std::uint64_t seed, double rho) const;

 private:
  friend class ReplayRun;
  std::int64_t gpu_mib(const TraceNode& node) const;

  Trace trace_;                          // pods and nodes sorted by name
  std::vector<std::string> models_;      // in the order of the nodes' file
  std::vector<std::size_t> file_order_;  // of the pods: shapes count in this order
  GpuSizes sizes_;
  std::int64_t capacity_milli_ = 0;
  std::int64_t demand_milli_ = 0;
};

}  // namespace cotenant::replay
