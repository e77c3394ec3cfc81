// A cluster for measuring, filled with tasks in the mix of the openb trace, by policy `tight`.
//
// Nodes have 8 GPUs. Their CPU and memory are the trace's: of its whole fleet 17.2 cores and 79 GiB a
// GPU, so 138 cores for 8; or, `kLeanNodes`, 96 cores, its most frequent node, whose CPU the mix uses up
// when 85 % of the GPUs are full. A copy is another cluster that goes on in the same way.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/placement/tight_policy.h"
#include "replay/openb_trace.h"

namespace cotenant::bench {

inline constexpr std::int64_t kGpuMib = 20000;  // 20 for each per-mille of the trace
inline constexpr int kGpus = 8;
inline constexpr double kFull = 0.85;
inline constexpr std::int64_t kLeanCpuMilli = 96000;
inline constexpr std::int64_t kLeanMemoryMib = 393216;

struct Mix {
  std::vector<core::PlacementQuery> queries;  // one for each pod of the trace
  std::int64_t node_cpu_milli = 0;            // of a node with 8 GPUs, as the fleet has on average
  std::int64_t node_memory_mib = 0;
};

inline Mix trace_mix() {
  const std::string folder = COTENANT_OPENB;
  const auto trace = replay::read_trace(folder + "/openb_node_list_gpu_node.csv.xz",
                                        folder + "/openb_pod_list_default.csv.xz");
  if (!trace) {
    fmt::print(stderr, "{}\n", trace.error().message);
    std::exit(1);
  }
  Mix mix;
  std::int64_t gpus = 0;
  for (const replay::TraceNode& node : trace->nodes) {
    mix.node_cpu_milli += node.cpu_milli;
    mix.node_memory_mib += node.memory_mib;
    gpus += node.gpus;
  }
  // Whole cores.
  mix.node_cpu_milli = (mix.node_cpu_milli * kGpus / gpus + 500) / 1000 * 1000;
  mix.node_memory_mib = mix.node_memory_mib * kGpus / gpus;
  for (const replay::TracePod& pod : trace->pods) {
    core::PlacementQuery query;
    query.need.cpu_units = pod.cpu_milli;
    query.need.memory_mib = pod.memory_mib;
    if (pod.is_share()) {
      query.need.gpu.shared_memory_mib = pod.gpu_milli * kGpuMib / 1000;
      query.need.gpu.shared_containers = 1;
    } else {
      query.need.gpu.whole_count = pod.gpus;
    }
    mix.queries.push_back(std::move(query));
  }
  return mix;
}

class Cluster {
 public:
  // Nodes are in `zones` zones in turn: sets of attributes that expressions tell apart.
  Cluster(int nodes, const Mix& mix, std::int64_t cpu_milli, std::int64_t memory_mib, int zones = 1)
      : mix_(&mix) {
    core::NodeImage image;
    image.cpu_total = image.cpu_free = cpu_milli;
    image.memory_total_mib = image.memory_free_mib = memory_mib;
    image.model = "G2";
    core::FleetGpu gpu;
    gpu.total_mib = gpu.left_mib = kGpuMib;
    gpu.client_slots = 48;
    image.gpus.assign(kGpus, gpu);
    for (int i = 0; i < nodes; ++i) {
      image.attributes = std::to_string(i % zones);
      fleet.add(image);
    }
    const double target = kFull * nodes * kGpus * kGpuMib;
    for (int failures = 0; static_cast<double>(used_mib_) < target && failures < 1000;) {
      const std::size_t pod = draw();
      const auto choice = core::choose_tight(fleet, query(pod));
      failures = choice ? 0 : failures + 1;
      if (choice) take(*choice, pod);
    }
  }

  std::size_t draw() { return prng.next() % mix_->queries.size(); }
  const core::PlacementQuery& query(std::size_t pod) const { return mix_->queries[pod]; }
  void take(const core::PlacementChoice& choice, std::size_t pod) {
    fleet.take(choice.slot, choice.gpus, query(pod).need);
    held_.push_back({choice, pod});
    used_mib_ += mib(query(pod));
  }
  struct Held {
    core::PlacementChoice choice;
    std::size_t pod = 0;
  };
  Held release_one() {
    std::swap(held_[prng.next() % held_.size()], held_.back());
    const Held held = held_.back();
    fleet.give_back(held.choice.slot, held.choice.gpus, query(held.pod).need);
    used_mib_ -= mib(query(held.pod));
    held_.pop_back();
    return held;
  }
  double full() const {
    return static_cast<double>(used_mib_) / (static_cast<double>(fleet.total_gpus()) * kGpuMib);
  }
  double cpu_used() const {
    std::int64_t left = 0;
    for (core::NodeSlot slot = 0; slot < fleet.size(); ++slot) left += fleet.node(slot).cpu_free;
    return 1 - static_cast<double>(left) / static_cast<double>(fleet.total_cpu_milli());
  }
  std::size_t tasks() const { return held_.size(); }

  core::Fleet fleet{1000};  // CPU in thousandths, as in the trace
  base::Prng prng{1};

 private:
  static std::int64_t mib(const core::PlacementQuery& query) {
    return query.need.gpu.shared_memory_mib + query.need.gpu.whole_count * kGpuMib;
  }
  const Mix* mix_;
  std::vector<Held> held_;
  std::int64_t used_mib_ = 0;
};

}  // namespace cotenant::bench
