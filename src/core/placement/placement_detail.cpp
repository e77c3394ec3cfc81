#include "core/placement/placement_detail.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace cotenant::core {
namespace {

// By reason, in the order of the tests.
std::string counts_text(const std::vector<FailedInstance>& failed) {
  std::map<std::pair<PlacementTest, std::string>, int> counts;
  for (const FailedInstance& entry : failed) {
    ++counts[{entry.failed.test, reason_of(entry.failed)}];
  }
  std::string text;
  for (const auto& [test, count] : counts) {
    text += fmt::format("{}{} of {} instances: {}", text.empty() ? "" : ", ", count, failed.size(),
                        test.second);
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

// The one that has the most MiB left; one that is DEDICATED or whose memory is unknown comes last.
std::optional<NearestGpu> nearest_gpu_for_share(const std::vector<FailedInstance>& failed,
                                                const TaskGpuNeed& need) {
  std::optional<NearestGpu> best;
  std::int64_t best_score = 0;
  for (const FailedInstance& entry : failed) {
    if (entry.failed.test != PlacementTest::kGpu) continue;
    const GpuLedger& ledger = entry.instance->gpus;
    for (std::size_t gpu = 0; gpu < ledger.size(); ++gpu) {
      const auto refusal =
          ledger.refuses_share(gpu, need.shared_memory_mib, need.shared_containers);
      const bool shareable = refusal == GpuRefusal::kMemory || refusal == GpuRefusal::kClientSlots;
      const std::int64_t score = shareable ? ledger.remaining_mib(gpu) : -1;
      if (!best || score > best_score) {
        best = NearestGpu{entry.instance, gpu};
        best_score = score;
      }
    }
  }
  return best;
}

// The busy GPU with the fewest containers on it. Nothing: all are idle, there are too few of them.
std::optional<std::size_t> least_busy_gpu(const GpuLedger& ledger) {
  std::optional<std::size_t> best;
  for (std::size_t gpu = 0; gpu < ledger.size(); ++gpu) {
    if (!ledger.refuses_whole(gpu)) continue;
    if (!best || ledger.container_count(gpu) < ledger.container_count(*best)) best = gpu;
  }
  return best;
}

// How many idle GPUs the instance lacks. One without GPUs lacks most.
std::int64_t missing_idle_gpus(const Instance& instance, const TaskGpuNeed& need) {
  const auto size = static_cast<std::int64_t>(instance.gpus.size());
  if (size == 0) return std::numeric_limits<std::int64_t>::max();
  return (need.whole_all ? size : need.whole_count) - instance.gpus.idle_count();
}

std::string health_text(const GpuLedger& ledger, std::size_t gpu) {
  return fmt::format("is out of service ({}) and takes nothing until it is back",
                     ledger.device(gpu).unavailable);
}

std::string share_obstacle(const GpuLedger& ledger, std::size_t gpu, const TaskGpuNeed& need) {
  switch (ledger.refuses_share(gpu, need.shared_memory_mib, need.shared_containers)
              .value_or(GpuRefusal::kBusy)) {
    case GpuRefusal::kUnhealthy:
      return health_text(ledger, gpu);
    case GpuRefusal::kDedicated:
      return fmt::format("is DEDICATED to task {}", holders_text(ledger, gpu));
    case GpuRefusal::kMemoryUnknown:
      return "takes whole-GPU work only, because its memory cannot be read";
    case GpuRefusal::kMemory: {
      const std::int64_t left_mib = ledger.remaining_mib(gpu);
      const std::string holders = ledger.mode(gpu) == SharingMode::kIdle
                                      ? std::string()
                                      : ", the rest held by task " + holders_text(ledger, gpu);
      return fmt::format("has {} of {} MiB left{}: {} MiB missing", left_mib, ledger.total_mib(gpu),
                         holders, need.shared_memory_mib - left_mib);
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
  if (!ledger.is_healthy(gpu)) return health_text(ledger, gpu);
  if (ledger.mode(gpu) == SharingMode::kDedicated) {
    return fmt::format("is DEDICATED to task {}", holders_text(ledger, gpu));
  }
  return fmt::format("is shared (NVIDIA_MPS): {} container(s) hold {} of {} MiB, task {}",
                     ledger.container_count(gpu), ledger.total_mib(gpu) - ledger.remaining_mib(gpu),
                     ledger.total_mib(gpu), holders_text(ledger, gpu));
}

std::string share_text(const std::optional<NearestGpu>& nearest, const TaskGpuNeed& need) {
  const std::string wanted =
      fmt::format("the task needs {} MiB on one GPU", need.shared_memory_mib);
  if (!nearest) return wanted + ", but none of these instances has a GPU";
  const GpuLedger& ledger = nearest->instance->gpus;
  const GpuDevice& device = ledger.device(nearest->gpu);
  return fmt::format("{}; nearest is GPU {} ({}) on instance {}: it {}", wanted, device.uuid,
                     device.model, nearest->instance->registration.id,
                     share_obstacle(ledger, nearest->gpu, need));
}

std::string whole_text(const Instance& instance, const TaskGpuNeed& need) {
  const GpuLedger& ledger = instance.gpus;
  const std::string wanted = need.whole_all
                                 ? std::string("all GPUs of an instance idle")
                                 : fmt::format("{} idle GPU(s) on one instance", need.whole_count);
  std::string text =
      fmt::format("the task needs {}; nearest is instance {}, which has {} of {} GPUs idle", wanted,
                  instance.registration.id, ledger.idle_count(), ledger.size());
  if (const auto gpu = least_busy_gpu(ledger)) {
    const GpuDevice& device = ledger.device(*gpu);
    text +=
        fmt::format(": GPU {} ({}) {}", device.uuid, device.model, whole_obstacle(ledger, *gpu));
  }
  return text;
}

std::string ports_text(const Instance& instance, const std::vector<HostPort>& ports) {
  const HostPort port = port_in_the_way(instance, ports).value_or(HostPort());
  const std::string holder = instance.ports.holder(port);
  return fmt::format("the task needs port {}/{}; on instance {} it is {}", port.port,
                     to_string(port.protocol), instance.registration.id,
                     holder.empty() ? std::string("reserved") : "held by task " + holder);
}

std::string shortfall_text(const FailedInstance& entry, const TaskNeed& need) {
  const Instance& instance = *entry.instance;
  const std::string& id = instance.registration.id;
  switch (entry.failed.test) {
    case PlacementTest::kConstraint:
      return fmt::format("instance {} does not meet the constraint: {}", id,
                         entry.failed.constraint == nullptr || entry.failed.constraint->text.empty()
                             ? reason_of(entry.failed)
                             : entry.failed.constraint->text);
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
      return fmt::format(
          "the task needs {} MiB of memory; instance {} has {} of {} MiB left: {} "
          "MiB missing",
          need.memory_mib, id, instance.free_memory_mib(), instance.registration.memory_mib,
          need.memory_mib - instance.free_memory_mib());
    case PlacementTest::kPorts:
      return ports_text(instance, need.ports);
    case PlacementTest::kGpu:
      break;
  }
  return "";
}

// Among the instances that came furthest, the one with the least shortfall; ties to the first.
const FailedInstance& nearest_instance(const std::vector<FailedInstance>& failed,
                                       PlacementTest furthest, const TaskNeed& need) {
  const auto shortfall_order = [&](const FailedInstance& entry) -> std::int64_t {
    if (furthest == PlacementTest::kCpu) return -entry.instance->free_cpu_units();
    if (furthest == PlacementTest::kMemory) return -entry.instance->free_memory_mib();
    if (furthest == PlacementTest::kGpu && need.gpu.is_whole()) {
      return missing_idle_gpus(*entry.instance, need.gpu);
    }
    return 0;
  };
  const FailedInstance* best = nullptr;
  for (const FailedInstance& entry : failed) {
    if (entry.failed.test != furthest) continue;
    if (best == nullptr || shortfall_order(entry) < shortfall_order(*best)) best = &entry;
  }
  return *best;
}

std::string_view verdict_text(const PlacementRefusal& refusal) {
  if (refusal.infeasible) {
    return "Infeasible (no instance of this cluster could run it even when empty)";
  }
  if (refusal.test == PlacementTest::kAgent)
    return "NoFit (no agent that could run it is connected)";
  return "NoFit (it would fit on an emptier cluster)";
}

}  // namespace

std::string reason_of(const FailedTest& failed) {
  return failed.constraint != nullptr ? failed.constraint->reason
                                      : std::string(reason(failed.test));
}

std::string obstacle_text(const FailedInstance& failed, const TaskNeed& need) {
  if (failed.failed.test != PlacementTest::kGpu) return shortfall_text(failed, need);
  return need.gpu.is_whole() ? whole_text(*failed.instance, need.gpu)
                             : share_text(nearest_gpu_for_share({failed}, need.gpu), need.gpu);
}

std::string gpu_obstacle_text(const GpuLedger& ledger, std::size_t gpu, const TaskGpuNeed& need) {
  return need.is_whole() ? whole_obstacle(ledger, gpu) : share_obstacle(ledger, gpu, need);
}

PlacementRefusal explain_refusal(const std::vector<FailedInstance>& failed, const TaskNeed& need,
                                 bool infeasible) {
  PlacementRefusal refusal;
  refusal.infeasible = infeasible;
  if (failed.empty()) {
    refusal.reason = std::string(reason(refusal.test));
    refusal.detail = "the cluster has no ACTIVE container instance";
    return refusal;
  }
  for (const FailedInstance& entry : failed)
    refusal.test = std::max(refusal.test, entry.failed.test);

  const FailedInstance& nearest_entry = nearest_instance(failed, refusal.test, need);
  const Instance* nearest = nearest_entry.instance;
  refusal.reason = reason_of(nearest_entry.failed);
  std::string what;
  if (refusal.test != PlacementTest::kGpu) {
    what = shortfall_text(nearest_entry, need);
  } else if (need.gpu.is_whole()) {
    what = whole_text(*nearest, need.gpu);
  } else {
    const auto gpu = nearest_gpu_for_share(failed, need.gpu);
    if (gpu) nearest = gpu->instance;
    what = share_text(gpu, need.gpu);
  }
  refusal.instance_id = nearest->registration.id;
  refusal.detail = fmt::format("{}: {}; {}", verdict_text(refusal), counts_text(failed), what);
  return refusal;
}

}  // namespace cotenant::core
