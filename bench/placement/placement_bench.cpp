// How fast and how large placement is: clusters of 1,000 to 100,000 nodes with 8 GPUs, 85 % full, requests
// in the mix of the openb trace (bench_cluster.h says what nodes). A decision is all of placement: CPU,
// memory, attributes, GPU, and the reservation in the fleet and its index; ports, constraints,
// strategies, what-if and explanations are switched on in turn. What RunTask does besides (the task, its
// records, the instance's own ledger) is not in it. One thread; ratios are of one run.
//
//   placement_bench [NODES...]     default: 1000 10000 100000, and 1213 for balanced
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "balanced_scan.h"
#include "bench_cluster.h"
#include "core/placement/placement_ranking.h"
#include "core/placement/policy_engine.h"
#include "core/placement/what_if.h"
#include "core/query/query.h"

namespace {

using namespace cotenant;
using bench::Cluster;
using bench::kGpuMib;
using bench::kGpus;
using core::Fleet;
using core::NodeSlot;
using core::PlacementChoice;
using core::PlacementQuery;
using Clock = std::chrono::steady_clock;
using Choose = std::function<std::optional<PlacementChoice>(const PlacementQuery&)>;

constexpr int kBatch = 1000;

double ns_since(Clock::time_point from) {
  return std::chrono::duration<double, std::nano>(Clock::now() - from).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void header() {
  fmt::print("{:>7} {:<42} {:>10} {:>12}  {}\n", "nodes", "what", "ns each", "per second", "");
}

void row(int nodes, const std::string& what, double ns, const std::string& note = {}) {
  fmt::print("{:>7} {:<42} {:>10.0f} {:>12.0f}  {}\n", nodes, what, ns, 1e9 / ns, note);
  std::fflush(stdout);
}

// Rounds of: release as many tasks as will come (not timed), decide and reserve each. The median round
// counts, so that what else the machine does meanwhile does not.
template <class Decide>
double time_places(Cluster& cluster, int rounds, int batch, Decide&& decide) {
  std::vector<double> each;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < batch; ++i) cluster.release_one();
    std::vector<std::size_t> pods;
    for (int i = 0; i < batch; ++i) pods.push_back(cluster.draw());
    const auto start = Clock::now();
    for (const std::size_t pod : pods) {
      if (const auto choice = decide(cluster.query(pod))) cluster.take(*choice, pod);
    }
    each.push_back(ns_since(start) / batch);
  }
  return median(std::move(each));
}

double time_pairs(Cluster& cluster, int rounds) {
  std::vector<double> each;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) {
      cluster.release_one();
      const std::size_t pod = cluster.draw();
      if (const auto choice = core::choose_tight(cluster.fleet, cluster.query(pod))) {
        cluster.take(*choice, pod);
      }
    }
    each.push_back(ns_since(start) / kBatch);
  }
  return median(std::move(each));
}

// The plain scan that the index replaces: every node, its tightest GPU that fits.
std::optional<PlacementChoice> scan_tight(const Fleet& fleet, const PlacementQuery& query) {
  std::int64_t least = INT64_MAX;
  std::optional<PlacementChoice> best;
  for (NodeSlot slot = 0; slot < fleet.size(); ++slot) {
    if (!core::node_admits(fleet, slot, query) || !fleet.gpus_fit(slot, query.need.gpu)) continue;
    const core::GpuSet gpus = core::tight_gpus(fleet, slot, query.need.gpu);
    const core::FleetNode& node = fleet.node(slot);
    std::int64_t rank = query.need.gpu.is_whole() ? node.whole_gpus : node.usable_mib;
    if (query.need.gpu.is_shared()) {
      const core::FleetGpu& gpu = fleet.gpu(slot, gpus.lowest());
      rank = 2 * std::int64_t{gpu.left_mib} + (gpu.is_idle() ? 1 : 0);
    }
    if (rank >= least) continue;
    least = rank;
    best = PlacementChoice{slot, gpus};
  }
  return best;
}

// What instances say of themselves: one of four zones each.
class Zones {
 public:
  Zones() {
    for (const char* zone : {"a", "b", "c", "d"}) attributes_.push_back({{"zone", zone}});
  }
  static constexpr int kCount = 4;
  static std::size_t of(NodeSlot slot) { return slot % kCount; }
  core::QueryFacts facts(NodeSlot slot) const {
    core::QueryFacts facts;
    facts.attributes = &attributes_[of(slot)];
    facts.agent_connected = true;
    return facts;
  }

 private:
  std::vector<std::map<std::string, std::string>> attributes_;
};

double measure_tight(int nodes, const bench::Mix& mix) {
  Cluster cluster(nodes, mix, mix.node_cpu_milli, mix.node_memory_mib);
  const Fleet& fleet = cluster.fleet;
  const auto tight = [&](const PlacementQuery& query) { return core::choose_tight(fleet, query); };
  const std::string state =
      fmt::format("{:.0f} % of the GPUs full, {:.0f} % of the CPU, {} tasks", 100 * cluster.full(),
                  100 * cluster.cpu_used(), cluster.tasks());
  time_places(cluster, 5, kBatch, tight);
  const double placed = time_places(cluster, 41, kBatch, tight);
  row(nodes, "tight", placed, state);
  row(nodes, "tight, release and place", time_pairs(cluster, 41));
  const int scans = std::clamp(2000000 / nodes, 20, 1000);
  const double scan = time_places(
      cluster, 5, scans, [&](const PlacementQuery& query) { return scan_tight(fleet, query); });
  row(nodes, "tight by a scan", scan, fmt::format("the index is {:.0f} x as fast", scan / placed));

  // One thing more in turn. Requests come in pairs whose constraints leave each other's instances, so that
  // the cluster stays as full everywhere.
  const Zones zones;
  const std::vector<core::Query> in_zones = {*core::Query::parse("attribute:zone in [a, b]"),
                                             *core::Query::parse("attribute:zone in [c, d]")};
  int pair = 0;
  const core::PlacementConstraint member_of{
      "memberOf",
      [&](NodeSlot slot) {
        return in_zones[static_cast<std::size_t>(pair % 2)].matches(zones.facts(slot));
      },
      "memberOf attribute:zone", true};
  const core::PlacementConstraint distinct{
      "distinct", [&](NodeSlot slot) { return slot % 3 != static_cast<unsigned>(pair % 3); }};
  const auto ports = [&](NodeSlot slot, bool) {
    return slot / 4 % 2 == static_cast<unsigned>(pair % 2);
  };
  Cluster zoned(nodes, mix, mix.node_cpu_milli, mix.node_memory_mib, Zones::kCount);
  const auto time_with = [&](const char* what, const PlacementQuery& more) {
    PlacementQuery with = more;
    row(nodes, what, time_places(zoned, 11, kBatch, [&](const PlacementQuery& query) {
          with.need = query.need;
          ++pair;
          return core::choose_tight(zoned.fleet, with);
        }));
  };
  PlacementQuery more;
  time_with("tight, nodes of four zones", more);
  more.constraints = {member_of};
  time_with("+ memberOf attribute:zone in [a, b], [c, d]", more);
  more.constraints = {distinct};
  time_with("+ distinctInstance, a third has one", more);
  more.constraints.clear();
  more.gives_ports = ports;
  time_with("+ a host port that half the nodes have", more);
  more.constraints = {member_of, distinct};
  time_with("+ all three", more);

  base::Prng prng(3);
  std::vector<std::int64_t> of_zone(4);
  const auto spread =
      core::RankStage::spread([&](NodeSlot slot) { return of_zone[Zones::of(slot)]; });
  const auto pack = core::RankStage::binpack(core::PackField::kGpuMemory);
  const auto time_stages = [&](const char* what, const std::vector<core::RankStage>& stages) {
    row(nodes, what, time_places(cluster, 3, scans, [&](const PlacementQuery& query) {
          const auto choice = core::choose_by_stages(fleet, query, stages, prng);
          if (choice) ++of_zone[Zones::of(choice->slot)];
          return choice;
        }));
  };
  time_stages("strategy binpack gpuMemory", {pack});
  time_stages("strategy binpack memory", {core::RankStage::binpack(core::PackField::kMemory)});
  time_stages("strategy spread zone, binpack gpuMemory", {spread, pack});
  time_stages("strategy random", {core::RankStage::random()});

  row(nodes, "what if ten more came, undone (each)",
      time_places(cluster, 5, 100, [&](const PlacementQuery& query) {
        core::WhatIf what_if(cluster.fleet);
        for (int copy = 0; copy < 10; ++copy) {
          const auto choice = core::choose_tight(fleet, query);
          if (!choice) break;
          what_if.take(*choice, query.need);
        }
        return std::optional<PlacementChoice>();
      }) / 10);
  fmt::print("{:>7} memory: {:.0f} bytes a GPU (fleet and index)\n", nodes,
             static_cast<double>(fleet.bytes()) / static_cast<double>(fleet.total_gpus()));
  return placed;
}

void measure_lean(int nodes, const bench::Mix& mix) {
  Cluster cluster(nodes, mix, bench::kLeanCpuMilli, bench::kLeanMemoryMib);
  const auto tight = [&](const PlacementQuery& query) {
    return core::choose_tight(cluster.fleet, query);
  };
  time_places(cluster, 5, kBatch, tight);
  row(nodes, "tight, nodes of 96 cores", time_places(cluster, 21, kBatch, tight),
      fmt::format("{:.0f} % of the GPUs full, {:.0f} % of the CPU", 100 * cluster.full(),
                  100 * cluster.cpu_used()));
}

// Arrivals and departures under balanced, by the engine or by the scan; a copy of the cluster each, so
// that both see the same. What is kept of a decision is the least of all runs: the work is the same, and
// what differs is what else the machine did.
struct Decisions {
  std::vector<double> ns;
  std::uint64_t digest = 0;  // of the choices
  double mean() const {
    double sum = 0;
    for (const double each : ns) sum += each;
    return sum / static_cast<double>(ns.size());
  }
  double at(double part) const {
    std::vector<double> sorted = ns;
    std::sort(sorted.begin(), sorted.end());
    return sorted[std::min(sorted.size() - 1,
                           static_cast<std::size_t>(part * static_cast<double>(sorted.size())))];
  }
  void keep_least(const Decisions& other) {
    if (ns.empty()) {
      *this = other;
      return;
    }
    for (std::size_t i = 0; i < ns.size(); ++i) ns[i] = std::min(ns[i], other.ns[i]);
  }
  void add(double each, const std::optional<PlacementChoice>& choice) {
    ns.push_back(each);
    digest = digest * 1099511628211ULL + (choice ? choice->slot * 64ULL : 12345);
    if (choice) choice->gpus.for_each([&](std::size_t gpu) { digest = digest * 31 + gpu + 1; });
  }
};

Decisions run_engine(Cluster cluster, std::string_view policy, int arrivals, bool explain,
                     std::size_t* bytes) {
  core::PolicyEngine engine;
  core::Workload workload;
  Decisions out;
  for (int i = 0; i < arrivals; ++i) {
    cluster.release_one();
    workload.departed();
    const std::size_t pod = cluster.draw();
    const PlacementQuery& query = cluster.query(pod);
    const auto start = Clock::now();
    workload.arrive(cluster.fleet, core::shape_of(cluster.fleet, query));
    const auto choice = engine.choose(cluster.fleet, workload, policy, query);
    if (choice && explain) engine.terms(cluster.fleet, workload, policy, query, *choice);
    if (choice) {
      cluster.take(*choice, pod);
      workload.placed();
    }
    out.add(ns_since(start), choice);
  }
  *bytes = engine.bytes();
  return out;
}

Decisions run_scan(Cluster cluster, const bench::Mix& mix, int arrivals) {
  const Fleet& fleet = cluster.fleet;
  std::vector<bench::BalancedScan::Node> nodes;
  for (NodeSlot slot = 0; slot < fleet.size(); ++slot) {
    bench::BalancedScan::Node node{fleet.node(slot).cpu_free, fleet.node(slot).memory_free_mib};
    for (std::size_t gpu = 0; gpu < kGpus; ++gpu) node.left[gpu] = fleet.gpu(slot, gpu).left_milli;
    nodes.push_back(node);
  }
  std::vector<bench::BalancedScan::Request> requests;
  for (const PlacementQuery& query : mix.queries) {
    const core::TaskGpuNeed& gpu = query.need.gpu;
    requests.push_back(
        {query.need.cpu_units, query.need.memory_mib,
         gpu.is_shared() ? gpu.shared_memory_mib * 1000 / kGpuMib : (gpu.is_whole() ? 1000 : 0),
         gpu.is_shared() ? 1 : gpu.whole_count});
  }
  bench::BalancedScan scan(std::move(nodes), std::move(requests), fleet.total_cpu_milli());
  Decisions out;
  for (int i = 0; i < arrivals; ++i) {
    const Cluster::Held gone = cluster.release_one();
    std::uint32_t gpus = 0;
    gone.choice.gpus.for_each([&](std::size_t gpu) { gpus |= 1U << gpu; });
    scan.leave({gone.choice.slot, gpus}, gone.pod);
    const std::size_t pod = cluster.draw();
    const auto start = Clock::now();
    const auto choice = scan.place(pod);
    const double ns = ns_since(start);
    std::optional<PlacementChoice> placed;
    if (choice) {
      placed = PlacementChoice{static_cast<NodeSlot>(choice->node), {}};
      for (std::size_t gpu = 0; gpu < kGpus; ++gpu) {
        if ((choice->gpus >> gpu & 1) != 0) placed->gpus.insert(gpu);
      }
      cluster.take(*placed, pod);
    }
    out.add(ns, placed);
  }
  return out;
}

// What a decision costs under each policy, on the same arrivals.
void measure_policies(int nodes, const bench::Mix& mix) {
  const Cluster cluster(nodes, mix, mix.node_cpu_milli, mix.node_memory_mib);
  constexpr int kArrivals = 5000;
  for (const std::string_view policy : core::placement_policy_names()) {
    std::size_t bytes = 0;
    const Decisions decisions = run_engine(cluster, policy, kArrivals, false, &bytes);
    row(nodes, fmt::format("policy {}, release and place", policy), decisions.mean(),
        fmt::format("us: median {:.1f}, p99 {:.0f}", decisions.at(0.5) / 1000,
                    decisions.at(0.99) / 1000));
  }
}

double measure_balanced(int nodes, const bench::Mix& mix) {
  const Cluster cluster(nodes, mix, mix.node_cpu_milli, mix.node_memory_mib);
  constexpr int kArrivals = 45000;  // as the published replays with departures
  constexpr int kRuns = 3;
  Decisions engine;
  std::size_t bytes = 0;
  for (int run = 0; run < kRuns; ++run)
    engine.keep_least(run_engine(cluster, "balanced", kArrivals, false, &bytes));
  row(nodes, "balanced, release and place, learning", engine.mean(),
      fmt::format("us: median {:.1f}, p99 {:.0f}, p99.9 {:.0f}, longest {:.0f}",
                  engine.at(0.5) / 1000, engine.at(0.99) / 1000, engine.at(0.999) / 1000,
                  engine.at(1) / 1000));
  if (nodes <= 20000) {
    Decisions scan;
    for (int run = 0; run < kRuns; ++run) scan.keep_least(run_scan(cluster, mix, kArrivals));
    row(nodes, "balanced by a scan", scan.mean(),
        fmt::format(
            "us: p99 {:.0f}, longest {:.0f}; the engine is {:.1f} x as fast, {}",
            scan.at(0.99) / 1000, scan.at(1) / 1000, scan.mean() / engine.mean(),
            scan.digest == engine.digest ? "every choice is the same" : "THE CHOICES DIFFER"));
  }
  fmt::print("{:>7} memory: {:.0f} bytes a GPU more for balanced's scores\n", nodes,
             static_cast<double>(bytes) / static_cast<double>(cluster.fleet.total_gpus()));

  Decisions explained;
  for (int run = 0; run < kRuns; ++run) {
    explained.keep_least(run_engine(cluster, "balanced", kArrivals, true, &bytes));
  }
  row(nodes, "balanced, each choice explained", explained.mean());
  return engine.mean();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes = {1000, 10000, 100000};
  if (argc > 1) sizes.clear();
  for (int i = 1; i < argc; ++i) sizes.push_back(std::clamp(std::atoi(argv[i]), 1, 1000000));
  const bench::Mix mix = bench::trace_mix();
  fmt::print("nodes of {} GPUs, {} cores, {} GiB; 85 % of the GPUs full; the mix of the trace\n",
             kGpus, mix.node_cpu_milli / 1000, mix.node_memory_mib / 1024);
  header();
  std::vector<double> tight;
  std::vector<double> balanced;
  for (const int nodes : sizes) {
    tight.push_back(measure_tight(nodes, mix));
    measure_lean(nodes, mix);
    balanced.push_back(measure_balanced(nodes == 1000 ? 1213 : nodes, mix));
    if (nodes <= 20000) measure_policies(nodes == 1000 ? 1213 : nodes, mix);
  }
  if (sizes.size() > 1) {
    fmt::print("growth from {} to {} nodes: tight {:.2f} x, balanced {:.2f} x\n", sizes.front(),
               sizes.back(), tight.back() / tight.front(), balanced.back() / balanced.front());
  }
  return 0;
}
