#include "replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "base/limits.h"
#include "base/prng.h"
#include "core/placement/policy_engine.h"
#include "core/placement/training_shapes.h"

namespace cotenant::replay {
namespace {

using base::ErrorCode;
using base::fail;
using core::PlacementChoice;

constexpr std::int64_t kArrivalsMax = 10'000'000;
constexpr int kChurnArrivals = 45000;
constexpr int kChurnWarmUp = 20000;
// The trace has no MPS client slots: never too few.
constexpr std::int16_t kReplayClientSlots = 30000;
// The published curves read a level a little before it is reached.
constexpr double kLevelSlackMilli = 4000;

template <class T>
void shuffle_from_back(std::vector<T>& items, base::Prng& prng) {
  for (std::size_t i = items.size(); i-- > 1;) std::swap(items[i], items[prng.next() % (i + 1)]);
}

struct PolicyName {
  std::string_view shown;
  std::string_view engine;
  bool knows_trace;
};
constexpr std::array kPolicyNames = {
    PolicyName{"TightGpu", "tight", false}, PolicyName{"BestFit", "bestfit", false},
    PolicyName{"FGD", "fgd", true},         PolicyName{"TC", "tc", true},
    PolicyName{"TCB", "tcb", true},         PolicyName{"WV", "wv", true},
    PolicyName{"WVonline", "wv", false},    PolicyName{"Balanced", "balanced", false},
};

}  // namespace

base::Result<ReplayPolicy> find_replay_policy(std::string_view name) {
  std::string known;
  for (const PolicyName& each : kPolicyNames) {
    if (name == each.shown || name == each.engine) {
      return ReplayPolicy{std::string(each.shown), std::string(each.engine), each.knows_trace};
    }
    known += (known.empty() ? "" : ", ") + std::string(each.shown);
  }
  return fail(ErrorCode::kInvalidParameter,
              fmt::format("policy: '{}' is none; there are {}", name, known));
}

base::Result<Replay> Replay::make(Trace trace, const GpuSizes& sizes) {
  Replay replay;
  replay.trace_ = std::move(trace);
  replay.sizes_ = sizes;
  for (const auto& [name, size] :
       {std::pair("gpu-mib", sizes.gpu_mib), std::pair("mib", sizes.reference_mib)}) {
    if (size && (*size < 1 || *size > base::limits::kGpuMemoryMibMax)) {
      return fail(ErrorCode::kInvalidParameter,
                  fmt::format("{}: {} is out of range (1 to {})", name, *size,
                              base::limits::kGpuMemoryMibMax));
    }
  }
  for (const TraceNode& node : replay.trace_.nodes) {
    if (sizes.reference_mib && node.gpus > 0 && !model_mib(node.model)) {
      return fail(ErrorCode::kInvalidParameter,
                  fmt::format("model: the size of '{}' (node {}) is not known; --mib needs it",
                              node.model, node.name));
    }
    if (std::find(replay.models_.begin(), replay.models_.end(), node.model) ==
        replay.models_.end()) {
      replay.models_.push_back(node.model);
    }
    replay.capacity_milli_ += 1000 * node.gpus;
  }
  std::vector<TracePod>& pods = replay.trace_.pods;
  for (const TracePod& pod : pods) replay.demand_milli_ += pod.demand_milli();
  std::vector<std::size_t> by_name(pods.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  std::sort(by_name.begin(), by_name.end(),
            [&](std::size_t a, std::size_t b) { return pods[a].name < pods[b].name; });
  std::vector<TracePod> sorted;
  replay.file_order_.resize(pods.size());
  for (std::size_t at = 0; at < by_name.size(); ++at) {
    sorted.push_back(pods[by_name[at]]);
    replay.file_order_[by_name[at]] = at;
  }
  pods = std::move(sorted);
  std::sort(replay.trace_.nodes.begin(), replay.trace_.nodes.end(),
            [](const TraceNode& a, const TraceNode& b) { return a.name < b.name; });
  return replay;
}

std::int64_t Replay::gpu_mib(const TraceNode& node) const {
  if (node.gpus == 0) return 0;
  if (sizes_.reference_mib) return *model_mib(node.model);
  return sizes_.gpu_mib.value_or(1000);
}

// One cluster under one policy.
class ReplayRun {
 public:
  ReplayRun(const Replay& replay, const ReplayPolicy& policy, const std::vector<TraceNode>& nodes)
      : replay_(replay), policy_(policy) {
    for (const std::string& model : replay.models_) {
      for (const TraceNode& node : nodes) {
        if (node.model != model) continue;
        fleet_.class_of(model, replay.gpu_mib(node));
        break;
      }
    }
    for (const TraceNode& node : nodes) add(node);
    for (const TracePod& pod : replay.trace_.pods) queries_.push_back(query_of(pod));
    if (policy.knows_trace) engine_.train(fleet_, policy.engine, whole_trace());
  }

  struct Placed {
    std::size_t pod = 0;
    PlacementChoice choice;
  };

  std::optional<Placed> place(std::size_t pod) {
    const core::PlacementQuery& query = queries_[pod];
    if (!policy_.knows_trace) workload_.arrive(fleet_, core::shape_of(fleet_, query));
    const auto choice = engine_.choose(fleet_, workload_, policy_.engine, query);
    if (!choice) return std::nullopt;
    fleet_.take(choice->slot, choice->gpus, query.need);
    workload_.placed();
    used_mib_ += taken_mib(*choice, query.need);
    return Placed{pod, *choice};
  }

  void leave(const Placed& placed) {
    const core::TaskNeed& need = queries_[placed.pod].need;
    used_mib_ -= taken_mib(placed.choice, need);
    fleet_.give_back(placed.choice.slot, placed.choice.gpus, need);
    workload_.departed();
  }

  double unallocated() const {
    return 100.0 - 100.0 * static_cast<double>(used_mib_) / static_cast<double>(capacity_mib_);
  }

 private:
  void add(const TraceNode& node) {
    core::NodeImage image;
    image.cpu_total = image.cpu_free = node.cpu_milli;
    image.memory_total_mib = image.memory_free_mib = node.memory_mib;
    image.model = node.model;
    core::FleetGpu gpu;
    gpu.total_mib = gpu.left_mib = static_cast<std::int32_t>(replay_.gpu_mib(node));
    gpu.client_slots = kReplayClientSlots;
    image.gpus.assign(static_cast<std::size_t>(node.gpus), gpu);
    capacity_mib_ += node.gpus * gpu.total_mib;
    fleet_.add(image);
  }

  core::PlacementQuery query_of(const TracePod& pod) const {
    core::PlacementQuery query;
    query.need.cpu_units = pod.cpu_milli;
    query.need.memory_mib = pod.memory_mib;
    if (pod.is_share()) {
      const std::int64_t whole_mib =
          replay_.sizes_.reference_mib.value_or(replay_.sizes_.gpu_mib.value_or(1000));
      query.need.gpu.shared_memory_mib = (pod.gpu_milli * whole_mib + 999) / 1000;
      query.need.gpu.shared_containers = 1;
    } else {
      query.need.gpu.whole_count = pod.gpus;
      query.wholes_by_memory = replay_.sizes_.reference_mib.has_value();
    }
    if (!pod.models.empty()) {
      query.models = pod.models;
      query.classes = core::classes_of_models(fleet_, pod.models);
    }
    return query;
  }

  // The shapes of all pods, in the order of the file.
  core::TrainingSet whole_trace() const {
    core::TrainingSet set;
    set.fleet_cpu_milli = fleet_.total_cpu_milli();
    set.fleet_gpus = fleet_.total_gpus();
    for (const core::NodeClass& each : fleet_.classes()) set.class_gpus[each.name()] += each.gpus;
    std::map<core::RequestShape, std::size_t> known;
    for (const std::size_t pod : replay_.file_order_) {
      const core::RequestShape shape = core::shape_of(fleet_, queries_[pod]);
      const auto [at, fresh] = known.emplace(shape, set.shapes.size());
      if (fresh) set.shapes.push_back({shape, 0});
      ++set.shapes[at->second].count;
    }
    return set;
  }

  std::int64_t taken_mib(const PlacementChoice& choice, const core::TaskNeed& need) const {
    if (need.gpu.is_shared()) return need.gpu.shared_memory_mib;
    std::int64_t mib = 0;
    choice.gpus.for_each([&](std::size_t gpu) { mib += fleet_.gpu(choice.slot, gpu).total_mib; });
    return mib;
  }

  const Replay& replay_;
  const ReplayPolicy& policy_;
  core::Fleet fleet_{1000};  // the trace counts CPU in thousandths
  core::Workload workload_;
  core::PolicyEngine engine_;
  std::vector<core::PlacementQuery> queries_;  // by pod
  std::int64_t capacity_mib_ = 0;
  std::int64_t used_mib_ = 0;
};

base::Status Replay::check_ratio(double ratio) const {
  const double arrivals = ratio * static_cast<double>(capacity_milli_) /
                          static_cast<double>(demand_milli_) *
                          static_cast<double>(trace_.pods.size());
  if (arrivals <= static_cast<double>(kArrivalsMax)) return {};
  return fail(ErrorCode::kInvalidParameter,
              fmt::format("ratio: {} are about {:.0f} arrivals of these pods on these nodes; at "
                          "most {} are replayed",
                          ratio, arrivals, kArrivalsMax));
}

FillUpResult Replay::fill_up(const ReplayPolicy& policy, std::uint64_t seed, double ratio) const {
  base::Prng prng(seed);
  const std::vector<TracePod>& pods = trace_.pods;
  std::vector<std::size_t> arrivals(pods.size());
  std::iota(arrivals.begin(), arrivals.end(), std::size_t{0});
  shuffle_from_back(arrivals, prng);
  std::int64_t demand_milli = demand_milli_;
  const double target = ratio * static_cast<double>(capacity_milli_);
  if (static_cast<double>(demand_milli) > target) {
    while (static_cast<double>(demand_milli) > target) {
      const auto at = static_cast<std::ptrdiff_t>(prng.next() % arrivals.size());
      demand_milli -= pods[*(arrivals.begin() + at)].demand_milli();
      arrivals.erase(arrivals.begin() + at);
    }
  } else {
    while (true) {
      const std::size_t pod = prng.next() % pods.size();
      if (static_cast<double>(demand_milli + pods[pod].gpu_milli) > target) break;
      demand_milli += pods[pod].demand_milli();
      arrivals.push_back(pod);
    }
  }
  std::vector<TraceNode> nodes = trace_.nodes;
  shuffle_from_back(nodes, prng);

  ReplayRun run(*this, policy, nodes);
  FillUpResult result;
  result.events = static_cast<int>(arrivals.size());
  std::size_t level = 0;
  std::int64_t arrived_milli = 0;
  for (const std::size_t pod : arrivals) {
    arrived_milli += pods[pod].demand_milli();
    if (!run.place(pod)) ++result.failed;
    while (level < FillUpResult::kLevels.size() &&
           static_cast<double>(arrived_milli) >=
               FillUpResult::kLevels[level] * static_cast<double>(capacity_milli_) -
                   kLevelSlackMilli) {
      result.unallocated_at[level++] = run.unallocated();
    }
  }
  result.unallocated = run.unallocated();
  while (level < FillUpResult::kLevels.size()) result.unallocated_at[level++] = result.unallocated;
  return result;
}

ChurnResult Replay::churn(const ReplayPolicy& policy, std::uint64_t seed, double rho) const {
  struct Departure {
    double time;
    ReplayRun::Placed placed;
    bool operator<(const Departure& other) const { return time > other.time; }
  };
  const std::vector<TracePod>& pods = trace_.pods;
  const double mean_milli = static_cast<double>(demand_milli_) / static_cast<double>(pods.size());
  const double lifetime = rho * static_cast<double>(capacity_milli_) / mean_milli;

  base::Prng prng(seed);
  std::vector<TraceNode> nodes = trace_.nodes;
  shuffle_from_back(nodes, prng);
  ReplayRun run(*this, policy, nodes);
  std::priority_queue<Departure> departures;
  ChurnResult result;
  double demand = 0;
  double lost = 0;
  constexpr int kMeasured = kChurnArrivals - kChurnWarmUp;
  for (int time = 0; time < kChurnArrivals; ++time) {
    while (!departures.empty() && departures.top().time <= time) {
      run.leave(departures.top().placed);
      departures.pop();
    }
    const std::size_t pod = prng.next() % pods.size();
    const double stays = -lifetime * std::log(1 - static_cast<double>(prng.next() >> 11) * 0x1p-53);
    const auto placed = run.place(pod);
    if (placed) departures.push({time + stays, *placed});
    if (time < kChurnWarmUp) continue;
    demand += static_cast<double>(pods[pod].demand_milli());
    result.unallocated += run.unallocated() / kMeasured;
    if (placed) continue;
    lost += static_cast<double>(pods[pod].demand_milli());
    ++result.blocked_requests;
  }
  result.blocked = 100.0 * result.blocked_requests / kMeasured;
  result.blocked_gpu = 100 * lost / demand;
  return result;
}

}  // namespace cotenant::replay
