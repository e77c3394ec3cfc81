// How fast and how large placement is: clusters of 1,000 to 100,000 nodes with 8 GPUs, 85 % full, requests
// in the mix of the openb trace. A decision is the whole of it: CPU, memory, attributes, GPU, and the
// reservation in the ledger and the index. Every ratio is of one run on one thread.
//
//   placement_bench [NODES...]     default: 1000 10000 100000
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "core/balanced_policy.h"
#include "core/placement_ranking.h"
#include "core/policy_engine.h"
#include "core/tight_policy.h"
#include "replay/openb_trace.h"

namespace {

using namespace cotenant;
using core::Fleet;
using core::NodeSlot;
using core::PlacementChoice;
using core::PlacementQuery;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kGpuMib = 20000;
constexpr int kGpus = 8;
constexpr double kFull = 0.85;

double ns_since(Clock::time_point from) {
  return std::chrono::duration<double, std::nano>(Clock::now() - from).count();
}

std::vector<PlacementQuery> trace_mix() {
  const std::string folder = COTENANT_OPENB;
  const auto trace = replay::read_trace(folder + "/openb_node_list_gpu_node.csv.xz",
                                        folder + "/openb_pod_list_default.csv.xz");
  if (!trace) {
    fmt::print(stderr, "{}\n", trace.error().message);
    std::exit(1);
  }
  std::vector<PlacementQuery> mix;
  for (const replay::TracePod& pod : trace->pods) {
    PlacementQuery query;
    query.need.cpu_units = pod.cpu_milli * 1024 / 1000;
    query.need.memory_mib = pod.memory_mib;
    if (pod.is_share()) {
      query.need.gpu.shared_memory_mib = pod.gpu_milli * kGpuMib / 1000;
      query.need.gpu.shared_containers = 1;
    } else {
      query.need.gpu.whole_count = pod.gpus;
    }
    mix.push_back(std::move(query));
  }
  return mix;
}

// A cluster and its running tasks.
class Cluster {
 public:
  Cluster(int nodes, const std::vector<PlacementQuery>& mix) : mix_(mix) {
    core::NodeImage image;
    image.cpu_total = image.cpu_free = std::int64_t{96} * 1024;
    image.memory_total_mib = image.memory_free_mib = std::int64_t{512} * 1024;
    image.model = "G2";
    core::FleetGpu gpu;
    gpu.total_mib = gpu.left_mib = kGpuMib;
    gpu.client_slots = 48;
    image.gpus.assign(kGpus, gpu);
    for (int i = 0; i < nodes; ++i) fleet.add(image);
    const double target = kFull * nodes * kGpus * kGpuMib;
    for (int failures = 0; used_mib_ < target && failures < 1000;) {
      const PlacementQuery& query = draw();
      const auto choice = core::choose_tight(fleet, query);
      failures = choice ? 0 : failures + 1;
      if (choice) take(*choice, query);
    }
  }

  const PlacementQuery& draw() { return mix_[prng.next() % mix_.size()]; }
  void take(const PlacementChoice& choice, const PlacementQuery& query) {
    fleet.take(choice.slot, choice.gpus, query.need);
    held_.push_back({choice, &query});
    used_mib_ += mib(query);
  }
  void release_one() {
    std::swap(held_[prng.next() % held_.size()], held_.back());
    const Held& held = held_.back();
    fleet.give_back(held.choice.slot, held.choice.gpus, held.query->need);
    used_mib_ -= mib(*held.query);
    held_.pop_back();
  }
  double full() const {
    return static_cast<double>(used_mib_) / (static_cast<double>(fleet.total_gpus()) * kGpuMib);
  }
  std::size_t tasks() const { return held_.size(); }

  Fleet fleet;
  base::Prng prng{1};

 private:
  struct Held {
    PlacementChoice choice;
    const PlacementQuery* query;
  };
  static std::int64_t mib(const PlacementQuery& query) {
    return query.need.gpu.shared_memory_mib + query.need.gpu.whole_count * kGpuMib;
  }
  const std::vector<PlacementQuery>& mix_;
  std::vector<Held> held_;
  std::int64_t used_mib_ = 0;
};

struct Timing {
  double mean_ns = 0;
  double p99_ns = 0;
  double max_ns = 0;
  int placed = 0;
};

// Rounds of: release some tasks (not timed), draw as many requests, decide and reserve each (timed).
template <class Choose>
Timing time_places(Cluster& cluster, int rounds, int batch, bool each, Choose&& choose) {
  Timing timing;
  std::vector<double> single;
  double total = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < batch; ++i) cluster.release_one();
    std::vector<const PlacementQuery*> queries;
    for (int i = 0; i < batch; ++i) queries.push_back(&cluster.draw());
    const auto start = Clock::now();
    for (const PlacementQuery* query : queries) {
      const auto from = each ? Clock::now() : start;
      const std::optional<PlacementChoice> choice = choose(*query);
      if (choice) {
        cluster.take(*choice, *query);
        ++timing.placed;
      }
      if (each) single.push_back(ns_since(from));
    }
    total += ns_since(start);
  }
  timing.mean_ns = total / (static_cast<double>(rounds) * batch);
  if (!single.empty()) {
    std::sort(single.begin(), single.end());
    timing.p99_ns = single[single.size() * 99 / 100];
    timing.max_ns = single.back();
  }
  return timing;
}

// The plain scan that the index replaces: every node, its tightest GPU that fits.
std::optional<PlacementChoice> scan_tight(const Fleet& fleet, const PlacementQuery& query) {
  std::int64_t least = INT64_MAX;
  std::optional<PlacementChoice> best;
  for (NodeSlot slot = 0; slot < fleet.size(); ++slot) {
    if (!core::node_admits(fleet, slot, query) || !fleet.gpus_fit(slot, query.need.gpu)) continue;
    const core::GpuSet gpus = core::tight_gpus(fleet, slot, query.need.gpu);
    const core::FleetNode& node = fleet.node(slot);
    const std::int64_t rank = query.need.gpu.is_shared()  ? fleet.gpu(slot, gpus.lowest()).left_mib
                              : query.need.gpu.is_whole() ? node.whole_gpus
                                                          : node.usable_mib;
    if (rank >= least) continue;
    least = rank;
    best = PlacementChoice{slot, gpus};
  }
  return best;
}

void row(int nodes, const char* what, const Timing& timing, const std::string& note = {}) {
  const auto micro = [](double ns) {
    return ns > 0 ? fmt::format("{:.2f}", ns / 1000) : std::string("-");
  };
  fmt::print("{:>7} {:<34} {:>10.0f} {:>12.0f} {:>10} {:>10}  {}\n", nodes, what, timing.mean_ns,
             1e9 / timing.mean_ns, micro(timing.p99_ns), micro(timing.max_ns), note);
}

struct Growth {
  double tight_ns = 0;
  double balanced_ns = 0;
};

Growth measure(int nodes, const std::vector<PlacementQuery>& mix) {
  Growth growth;
  Cluster cluster(nodes, mix);
  Fleet& fleet = cluster.fleet;
  const auto tight = [&](const PlacementQuery& query) { return core::choose_tight(fleet, query); };
  time_places(cluster, 5, 1000, false, tight);
  const Timing indexed = time_places(cluster, 50, 1000, false, tight);
  growth.tight_ns = indexed.mean_ns;
  row(nodes, "tight", indexed,
      fmt::format("{:.0f} % full, {} tasks", 100 * cluster.full(), cluster.tasks()));

  const auto pair_start = Clock::now();
  constexpr int kPairs = 50000;
  for (int i = 0; i < kPairs; ++i) {
    cluster.release_one();
    const PlacementQuery& query = cluster.draw();
    if (const auto choice = core::choose_tight(fleet, query)) cluster.take(*choice, query);
  }
  Timing pair;
  pair.mean_ns = ns_since(pair_start) / kPairs;
  row(nodes, "tight, release and place", pair);

  const int scans = std::max(10, 2000000 / nodes / 10);
  const Timing scan = time_places(cluster, 1, scans, false, [&](const PlacementQuery& query) {
    return scan_tight(fleet, query);
  });
  row(nodes, "tight by a scan", scan,
      fmt::format("index {:.0f} x", scan.mean_ns / indexed.mean_ns));

  base::Prng prng(3);
  const std::vector<core::RankStage> stages = {
      core::RankStage::binpack(core::PackField::kGpuMemory)};
  row(nodes, "strategy binpack gpuMemory",
      time_places(cluster, 1, scans, false, [&](const PlacementQuery& query) {
        return core::choose_by_stages(fleet, query, stages, prng);
      }));
  PlacementQuery constrained;
  row(nodes, "tight, constraint on every 2nd node",
      time_places(cluster, 5, 200, false, [&](const PlacementQuery& query) {
        constrained.need = query.need;
        constrained.constraints = {{"even", [](NodeSlot slot) { return slot % 2 == 0; }}};
        return core::choose_tight(fleet, constrained);
      }));

  core::PolicyEngine engine;
  core::Workload workload;
  const auto balanced = [&](const PlacementQuery& query) {
    workload.arrive(fleet, core::shape_of(fleet, query));
    auto choice = engine.choose(fleet, workload, "balanced", query);
    if (choice) workload.placed();
    return choice;
  };
  time_places(cluster, 40, 100, false, balanced);
  const Timing scored = time_places(cluster, 100, 100, true, balanced);
  growth.balanced_ns = scored.mean_ns;
  row(nodes, "balanced (learning, p99 and max us)", scored);
  row(nodes, "balanced, explained",
      time_places(cluster, 10, 100, false, [&](const PlacementQuery& query) {
        auto choice = balanced(query);
        if (choice) engine.terms(fleet, workload, "balanced", query, *choice);
        return choice;
      }));
  const auto gpus = static_cast<double>(fleet.total_gpus());
  fmt::print(
      "{:>7} memory: {:.0f} bytes a GPU (ledger and index), {:.0f} more for balanced's scores, "
      "{} a reservation\n",
      nodes, static_cast<double>(fleet.bytes()) / gpus, static_cast<double>(engine.bytes()) / gpus,
      sizeof(PlacementChoice) + sizeof(void*));
  return growth;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes = {1000, 10000, 100000};
  if (argc > 1) sizes.clear();
  for (int i = 1; i < argc; ++i) sizes.push_back(std::clamp(std::atoi(argv[i]), 1, 1000000));
  const std::vector<PlacementQuery> mix = trace_mix();
  fmt::print("{:>7} {:<34} {:>10} {:>12} {:>10} {:>10}\n", "nodes", "8 GPUs each, 85 % full",
             "ns each", "per second", "p99 us", "max us");
  std::vector<Growth> grown;
  for (const int nodes : sizes) grown.push_back(measure(nodes, mix));
  if (grown.size() > 1) {
    fmt::print("growth from {} to {} nodes: tight {:.2f} x, balanced {:.2f} x\n", sizes.front(),
               sizes.back(), grown.back().tight_ns / grown.front().tight_ns,
               grown.back().balanced_ns / grown.front().balanced_ns);
  }
  return 0;
}
