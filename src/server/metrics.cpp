#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace cotenant::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr double kBytesPerMib = 1024.0 * 1024.0;

Family<Gauge>& gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Family<Counter>& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::Impl {
  // What an instance counts for, so that it can be taken back.
  struct SeenGpu {
    core::SharingMode mode = core::SharingMode::kIdle;
    Gauge* capacity = nullptr;
    Gauge* reserved = nullptr;
  };
  struct SeenInstance {
    core::InstanceStatus status = core::InstanceStatus::kActive;
    std::map<std::string, SeenGpu> gpus;  // by UUID
  };

  prometheus::Registry registry;
  Family<Counter>& requests =
      counter(registry, "cotenant_api_requests_total", "Requests by operation and outcome");
  Family<Histogram>& seconds =
      prometheus::BuildHistogram()
          .Name("cotenant_api_request_duration_seconds")
          .Help("From a request's arrival at a worker to its answer, which is durable")
          .Register(registry);
  Counter& placed = counter(registry, "cotenant_tasks_placed_total",
                            "Tasks that RunTask and StartTask have placed")
                        .Add({});
  Family<Counter>& not_placed = counter(registry, "cotenant_tasks_not_placed_total",
                                        "Tasks that were not placed, by ECS's reason");
  Family<Gauge>& tasks = gauge(registry, "cotenant_tasks", "Tasks that are kept, by last status");
  Family<Gauge>& instances =
      gauge(registry, "cotenant_container_instances", "Container instances by status");
  Family<Gauge>& gpus = gauge(registry, "cotenant_gpus", "GPUs by sharing mode");
  Family<Gauge>& gpu_capacity = gauge(registry, "cotenant_gpu_memory_capacity_bytes",
                                      "GPU memory that a GPU offers to shares");
  Family<Gauge>& gpu_reserved =
      gauge(registry, "cotenant_gpu_memory_reserved_bytes",
            "GPU memory that tasks have reserved; all of it when dedicated");
  Gauge& agents =
      gauge(registry, "cotenant_agents_connected", "Agents that are connected at the moment")
          .Add({});
  Gauge& writable = gauge(registry, "cotenant_store_writable",
                          "1 while the store takes writes, 0 while they are refused")
                        .Add({});

  // Guards what follows; the registry has locks of its own.
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, Counter*, std::less<>> request_counters;
  std::map<std::string, Histogram*, std::less<>> request_seconds;

  // The loop's thread only.
  std::map<std::string, core::TaskStatus> seen_tasks;
  std::map<std::string, SeenInstance> seen_instances;

  void add_task(core::TaskStatus status, double by) {
    tasks.Add({{"last_status", std::string(core::to_string(status))}}).Increment(by);
  }
  void add_gpu(core::SharingMode mode, double by) {
    gpus.Add({{"sharing_mode", std::string(core::to_string(mode))}}).Increment(by);
  }
  void add_instance(core::InstanceStatus status, double by) {
    instances.Add({{"status", std::string(core::to_string(status))}}).Increment(by);
  }

  // Every series that there may be begins at 0, so that a rate has a start.
  void reset() {
    for (auto& [id, status] : seen_tasks) add_task(status, -1);
    seen_tasks.clear();
    while (!seen_instances.empty()) forget_instance(seen_instances.begin()->first);
    for (const auto status : {core::TaskStatus::kPending, core::TaskStatus::kRunning,
                              core::TaskStatus::kStopping, core::TaskStatus::kStopped}) {
      add_task(status, 0);
    }
    for (const auto mode :
         {core::SharingMode::kIdle, core::SharingMode::kNvidiaMps, core::SharingMode::kDedicated}) {
      add_gpu(mode, 0);
    }
    for (const auto status : {core::InstanceStatus::kActive, core::InstanceStatus::kDraining,
                              core::InstanceStatus::kInactive}) {
      add_instance(status, 0);
    }
  }

  void forget_instance(const std::string& id) {
    const auto found = seen_instances.find(id);
    if (found == seen_instances.end()) return;
    add_instance(found->second.status, -1);
    for (auto& [uuid, gpu] : found->second.gpus) {
      add_gpu(gpu.mode, -1);
      gpu_capacity.Remove(gpu.capacity);
      gpu_reserved.Remove(gpu.reserved);
    }
    seen_instances.erase(found);
  }

  void see_task(const core::State& state, const std::string& id, std::set<std::string>& touched) {
    const auto seen = seen_tasks.find(id);
    if (seen != seen_tasks.end()) {
      add_task(seen->second, -1);
      seen_tasks.erase(seen);
    }
    const auto found = state.tasks.find(id);
    if (found == state.tasks.end()) return;
    add_task(found->second.last_status, 1);
    seen_tasks[id] = found->second.last_status;
    touched.insert(found->second.instance_id);
  }

  void see_instance(const core::State& state, const std::string& id) {
    const auto found = state.instances.find(id);
    if (found == state.instances.end()) return forget_instance(id);
    const core::Instance& instance = found->second;
    const auto seen = seen_instances.find(id);
    if (seen == seen_instances.end() || seen->second.status != instance.status ||
        seen->second.gpus.size() != instance.gpus.size() ||
        !same_gpus(seen->second, instance.gpus)) {
      forget_instance(id);
      begin_instance(id, instance);
    }
    SeenInstance& now = seen_instances.at(id);
    for (std::size_t i = 0; i < instance.gpus.size(); ++i) {
      const auto gpu = now.gpus.find(instance.gpus.device(i).uuid);
      if (gpu == now.gpus.end()) continue;
      add_gpu(gpu->second.mode, -1);
      gpu->second.mode = instance.gpus.mode(i);
      add_gpu(gpu->second.mode, 1);
      const auto total = static_cast<double>(instance.gpus.total_mib(i));
      const auto left = static_cast<double>(instance.gpus.remaining_mib(i));
      gpu->second.capacity->Set(total * kBytesPerMib);
      gpu->second.reserved->Set((total - left) * kBytesPerMib);
    }
  }

  static bool same_gpus(const SeenInstance& seen, const core::GpuLedger& ledger) {
    for (std::size_t i = 0; i < ledger.size(); ++i) {
      if (seen.gpus.count(ledger.device(i).uuid) == 0) return false;
    }
    return true;
  }

  void begin_instance(const std::string& id, const core::Instance& instance) {
    SeenInstance& seen = seen_instances[id];
    seen.status = instance.status;
    add_instance(seen.status, 1);
    for (std::size_t i = 0; i < instance.gpus.size(); ++i) {
      const std::string& uuid = instance.gpus.device(i).uuid;
      const std::map<std::string, std::string> labels = {
          {"cluster", instance.registration.cluster}, {"container_instance", id}, {"gpu", uuid}};
      seen.gpus[uuid] = {core::SharingMode::kIdle, &gpu_capacity.Add(labels),
                         &gpu_reserved.Add(labels)};
      add_gpu(core::SharingMode::kIdle, 1);
    }
  }
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {
  impl_->reset();
}
Metrics::~Metrics() = default;

void Metrics::count_request(std::string_view operation, std::string_view outcome, double seconds) {
  const std::lock_guard lock(impl_->mutex);
  Counter*& requests = impl_->request_counters[{std::string(operation), std::string(outcome)}];
  if (requests == nullptr) {
    requests = &impl_->requests.Add(
        {{"operation", std::string(operation)}, {"outcome", std::string(outcome)}});
  }
  requests->Increment();
  Histogram*& durations = impl_->request_seconds[std::string(operation)];
  if (durations == nullptr) {
    durations = &impl_->seconds.Add({{"operation", std::string(operation)}},
                                    Histogram::BucketBoundaries{0.001, 0.0025, 0.005, 0.01, 0.025,
                                                                0.05, 0.1, 0.25, 0.5, 1.0, 2.5});
  }
  durations->Observe(seconds);
}

void Metrics::count_placed(std::size_t tasks) {
  impl_->placed.Increment(static_cast<double>(tasks));
}

void Metrics::count_not_placed(std::string_view reason, std::size_t tasks) {
  impl_->not_placed.Add({{"reason", std::string(reason)}}).Increment(static_cast<double>(tasks));
}

void Metrics::on_loaded(const core::State& state) {
  impl_->reset();
  std::set<std::string> touched;
  for (const auto& [id, task] : state.tasks) impl_->see_task(state, id, touched);
  for (const auto& [id, instance] : state.instances) impl_->see_instance(state, id);
}

void Metrics::on_stored(const core::State& state, const core::Effects& effects) {
  std::set<std::string> touched;
  for (const core::RecordRef& ref : effects.changed_records) {
    if (ref.kind == core::RecordKind::kTask) impl_->see_task(state, ref.id, touched);
    if (ref.kind == core::RecordKind::kInstance) touched.insert(ref.id);
  }
  for (const std::string& id : touched) impl_->see_instance(state, id);
}

std::string Metrics::text(bool store_writable, std::size_t connected_agents) const {
  impl_->agents.Set(static_cast<double>(connected_agents));
  impl_->writable.Set(store_writable ? 1 : 0);
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, impl_->registry.Collect());
  return out.str();
}

}  // namespace cotenant::server
