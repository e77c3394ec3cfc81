#include "core/placement.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/assert.h"
#include "core/placement_detail.h"

namespace cotenant::core {
namespace {

bool has_attributes(const Instance& instance, const TaskNeed& need) {
  return !need.gpu.is_shared() ||
         instance.registration.attributes.count(std::string(kSharingAttribute)) > 0;
}

// The whole GPUs a need takes on this instance: all of them, or a count.
int whole_count(const Instance& instance, const TaskGpuNeed& need) {
  return need.whole_all ? static_cast<int>(instance.gpus.size()) : need.whole_count;
}

bool gpus_fit(const Instance& instance, const TaskGpuNeed& need) {
  if (need.is_none()) return true;
  const GpuLedger& ledger = instance.gpus;
  if (need.is_whole()) {
    const int count = whole_count(instance, need);
    return count > 0 && ledger.idle_count() >= count;
  }
  for (std::size_t gpu = 0; gpu < ledger.size(); ++gpu) {
    if (!ledger.refuses_share(gpu, need.shared_memory_mib, need.shared_containers)) return true;
  }
  return false;
}

// Feasible: the first test that the instance fails, or nothing.
std::optional<PlacementTest> failed_test(const Instance& instance, const TaskNeed& need) {
  if (!instance.agent_connected) return PlacementTest::kAgent;
  if (!has_attributes(instance, need)) return PlacementTest::kAttribute;
  if (instance.free_cpu_units() < need.cpu_units) return PlacementTest::kCpu;
  if (instance.free_memory_mib() < need.memory_mib) return PlacementTest::kMemory;
  if (!gpus_fit(instance, need.gpu)) return PlacementTest::kGpu;
  return std::nullopt;
}

// Could the instance run the task if nothing else ran on it?
bool fits_when_empty(const Instance& instance, const TaskNeed& need) {
  Instance empty = instance;
  empty.agent_connected = true;
  empty.used_cpu_units = 0;
  empty.used_memory_mib = 0;
  empty.gpus = GpuLedger(instance.registration.gpus);
  return !failed_test(empty, need);
}

// Rank: lower is better; the registration number decides ties.
struct Candidate {
  std::tuple<std::int64_t, int, std::int64_t, std::size_t> rank;
  Placement placement;
};

std::optional<Candidate> rank_share(const Instance& instance, const TaskGpuNeed& need) {
  std::optional<Candidate> best;
  for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
    if (instance.gpus.refuses_share(gpu, need.shared_memory_mib, need.shared_containers)) continue;
    const int idle_last = instance.gpus.mode(gpu) == SharingMode::kNvidiaMps ? 0 : 1;
    Candidate candidate{{instance.gpus.remaining_mib(gpu), idle_last, instance.number, gpu},
                        {instance.registration.id, {gpu}}};
    if (!best || candidate.rank < best->rank) best = std::move(candidate);
  }
  return best;
}

Candidate rank_whole(const Instance& instance, const TaskGpuNeed& need) {
  Candidate candidate{{instance.gpus.idle_count(), 0, instance.number, 0},
                      {instance.registration.id, {}}};
  const auto count = static_cast<std::size_t>(whole_count(instance, need));
  for (std::size_t gpu = 0; candidate.placement.gpus.size() < count; ++gpu) {
    if (!instance.gpus.refuses_whole(gpu)) candidate.placement.gpus.push_back(gpu);
  }
  return candidate;
}

Candidate rank_without_gpu(const Instance& instance) {
  std::int64_t gpu_memory_left_mib = 0;
  for (std::size_t gpu = 0; gpu < instance.gpus.size(); ++gpu) {
    gpu_memory_left_mib += instance.gpus.remaining_mib(gpu);
  }
  return {{gpu_memory_left_mib, 0, instance.number, 0}, {instance.registration.id, {}}};
}

Candidate rank(const Instance& instance, const TaskNeed& need) {
  if (need.gpu.is_shared()) return *rank_share(instance, need.gpu);
  if (need.gpu.is_whole()) return rank_whole(instance, need.gpu);
  return rank_without_gpu(instance);
}

}  // namespace

std::string_view reason(PlacementTest test) {
  switch (test) {
    case PlacementTest::kAgent:
      return "AGENT";
    case PlacementTest::kAttribute:
      return "ATTRIBUTE";
    case PlacementTest::kCpu:
      return "RESOURCE:CPU";
    case PlacementTest::kMemory:
      return "RESOURCE:MEMORY";
    case PlacementTest::kGpu:
      return "RESOURCE:GPU";
  }
  return "";
}

tl::expected<Placement, PlacementRefusal> place(const std::vector<const Instance*>& instances,
                                                const TaskNeed& need) {
  COTENANT_ASSERT(!(need.gpu.is_shared() && need.gpu.is_whole()));
  std::optional<Candidate> best;
  std::vector<FailedInstance> failed;
  for (const Instance* instance : instances) {
    if (const auto test = failed_test(*instance, need)) {
      failed.push_back({instance, *test});
      continue;
    }
    Candidate candidate = rank(*instance, need);
    if (!best || candidate.rank < best->rank) best = std::move(candidate);
  }
  if (best) return std::move(best->placement);

  const bool infeasible =
      std::none_of(instances.begin(), instances.end(),
                   [&](const Instance* instance) { return fits_when_empty(*instance, need); });
  return tl::unexpected<PlacementRefusal>(explain_refusal(failed, need, infeasible));
}

}  // namespace cotenant::core
