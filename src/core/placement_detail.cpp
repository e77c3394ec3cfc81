#include "core/placement_detail.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/limits.h"

namespace cotenant::core {
namespace {

constexpr std::array kTests = {PlacementTest::kAgent, PlacementTest::kAttribute,
                               PlacementTest::kCpu, PlacementTest::kMemory, PlacementTest::kGpu};

std::string counts_text(const std::vector<FailedInstance>& failed) {
  std::string text;
  for (const PlacementTest test : kTests) {
    const auto count =
        std::count_if(failed.begin(), failed.end(),
                      [&](const FailedInstance& entry) { return entry.test == test; });
    if (count == 0) continue;
    text += fmt::format("{}{} of {} instances: {}", text.empty() ? "" : ", ", count, failed.size(),
                        reason(test));
  }
  return text;
}

// "held by task a, b and 3 more"
std::string holders_text(const GpuLedger& ledger, std::size_t gpu) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> ids = ledger.task_ids(gpu);
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, ids.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ids[i]);
  }
  if (ids.size() > kShown) text += fmt::format(" and {} more", ids.size() - kShown);
  return text;
}

struct NearestGpu {
  const Instance* instance = nullptr;
  std::size_t gpu = 0;
};

// For a share: the GPU in a sharing mode that has the most MiB left; one that is DEDICATED or whose
// memory is unknown comes last. For whole GPUs: the busy GPU with the fewest containers on it.
std::optional<NearestGpu> nearest_gpu(const std::vector<FailedInstance>& failed,
                                      const TaskGpuNeed& need) {
  std::optional<NearestGpu> best;
  std::int64_t best_score = 0;
  for (const FailedInstance& entry : failed) {
    if (entry.test != PlacementTest::kGpu) continue;
    const GpuLedger& ledger = entry.instance->gpus;
    for (std::size_t gpu = 0; gpu < ledger.size(); ++gpu) {
      if (need.is_whole() && !ledger.refuses_whole(gpu)) continue;  // idle: not what is in the way
      const std::int64_t score =
          need.is_whole() ? -ledger.container_count(gpu) : ledger.remaining_mib(gpu);
      if (!best || score > best_score) {
        best = NearestGpu{entry.instance, gpu};
        best_score = score;
      }
    }
  }
  return best;
}

std::string share_obstacle(const GpuLedger& ledger, std::size_t gpu, const TaskGpuNeed& need) {
  switch (ledger.refuses_share(gpu, need.shared_memory_mib, need.shared_containers)
              .value_or(GpuRefusal::kBusy)) {
    case GpuRefusal::kDedicated:
      return fmt::format("is DEDICATED to task {}", holders_text(ledger, gpu));
    case GpuRefusal::kMemoryUnknown:
      return "takes whole-GPU work only, because its memory cannot be read";
    case GpuRefusal::kMemory: {
      const std::int64_t left_mib = ledger.remaining_mib(gpu);
      const std::string holders = ledger.mode(gpu) == SharingMode::kIdle
                                      ? std::string()
                                      : ", the rest held by task " + holders_text(ledger, gpu);
      return fmt::format("has {} of {} MiB left{}: {} MiB missing", left_mib,
                         ledger.total_mib(gpu), holders, need.shared_memory_mib - left_mib);
    }
    case GpuRefusal::kClientSlots:
      return fmt::format("has {} of {} MPS client slots taken (one stays free for the probe)",
                         ledger.container_count(gpu), ledger.device(gpu).client_slots);
    case GpuRefusal::kBusy:
      break;
  }
  return "is busy";
}

std::string whole_obstacle(const GpuLedger& ledger, std::size_t gpu) {
  if (ledger.mode(gpu) == SharingMode::kDedicated) {
    return fmt::format("is DEDICATED to task {}", holders_text(ledger, gpu));
  }
  return fmt::format("is shared (NVIDIA_MPS): {} container(s) hold {} of {} MiB, task {}",
                     ledger.container_count(gpu),
                     ledger.total_mib(gpu) - ledger.remaining_mib(gpu), ledger.total_mib(gpu),
                     holders_text(ledger, gpu));
}

std::string gpu_text(const std::vector<FailedInstance>& failed, const TaskGpuNeed& need) {
  const std::string wanted =
      need.is_shared() ? fmt::format("{} MiB on one GPU", need.shared_memory_mib)
      : need.whole_all ? std::string("all GPUs of an instance idle")
                       : fmt::format("{} idle GPU(s) on one instance", need.whole_count);
  const auto nearest = nearest_gpu(failed, need);
  if (!nearest) return fmt::format("the task needs {}", wanted);
  const GpuLedger& ledger = nearest->instance->gpus;
  const GpuDevice& device = ledger.device(nearest->gpu);
  const std::string idle =
      need.is_whole() ? fmt::format(", its instance has {} of {} GPUs idle", ledger.idle_count(),
                                    ledger.size())
                      : std::string();
  return fmt::format("the task needs {}; nearest is GPU {} ({}) on instance {}: it {}{}", wanted,
                     device.uuid, device.model, nearest->instance->registration.id,
                     need.is_shared() ? share_obstacle(ledger, nearest->gpu, need)
                                      : whole_obstacle(ledger, nearest->gpu),
                     idle);
}

std::string shortfall_text(const Instance& instance, PlacementTest test, const TaskNeed& need) {
  const std::string& id = instance.registration.id;
  switch (test) {
    case PlacementTest::kAgent:
      return fmt::format("the agent of instance {} is not connected", id);
    case PlacementTest::kAttribute:
      return fmt::format("instance {} lacks the attribute {}", id, kSharingAttribute);
    case PlacementTest::kCpu:
      return fmt::format("the task needs {} CPU units; instance {} has {} of {} left: {} missing",
                         need.cpu_units, id, instance.free_cpu_units(),
                         instance.registration.cpu_units,
                         need.cpu_units - instance.free_cpu_units());
    case PlacementTest::kMemory:
      return fmt::format("the task needs {} MiB of memory; instance {} has {} of {} MiB left: {} "
                         "MiB missing",
                         need.memory_mib, id, instance.free_memory_mib(),
                         instance.registration.memory_mib,
                         need.memory_mib - instance.free_memory_mib());
    case PlacementTest::kGpu:
      break;
  }
  return "";
}

// Among the instances that came furthest, the one with the least shortfall; ties to the first.
const FailedInstance& nearest_instance(const std::vector<FailedInstance>& failed,
                                       PlacementTest furthest) {
  const auto shortfall_order = [&](const FailedInstance& entry) -> std::int64_t {
    if (furthest == PlacementTest::kCpu) return -entry.instance->free_cpu_units();
    if (furthest == PlacementTest::kMemory) return -entry.instance->free_memory_mib();
    return 0;
  };
  const FailedInstance* best = nullptr;
  for (const FailedInstance& entry : failed) {
    if (entry.test != furthest) continue;
    if (best == nullptr || shortfall_order(entry) < shortfall_order(*best)) best = &entry;
  }
  return *best;
}

}  // namespace

PlacementRefusal explain_refusal(const std::vector<FailedInstance>& failed, const TaskNeed& need,
                                 bool infeasible) {
  PlacementRefusal refusal;
  refusal.infeasible = infeasible;
  if (failed.empty()) {
    refusal.detail = "the cluster has no ACTIVE container instance";
    return refusal;
  }
  for (const FailedInstance& entry : failed) refusal.test = std::max(refusal.test, entry.test);

  std::string what;
  if (refusal.test == PlacementTest::kGpu) {
    what = gpu_text(failed, need.gpu);
    const auto nearest = nearest_gpu(failed, need.gpu);
    refusal.instance_id = (nearest ? nearest->instance
                                   : nearest_instance(failed, refusal.test).instance)
                              ->registration.id;
  } else {
    const FailedInstance& nearest = nearest_instance(failed, refusal.test);
    what = shortfall_text(*nearest.instance, refusal.test, need);
    refusal.instance_id = nearest.instance->registration.id;
  }
  refusal.detail = fmt::format(
      "{}: {}; {}",
      infeasible ? "Infeasible (no instance of this cluster could run it even when empty)"
                 : "NoFit (it would fit on an emptier cluster)",
      counts_text(failed), what);
  return refusal;
}

}  // namespace cotenant::core
