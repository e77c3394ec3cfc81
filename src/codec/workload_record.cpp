#include "codec/workload_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

// Counts beyond this no cluster reaches; it keeps the policies' sums within 64 bits.
constexpr std::int64_t kCountMax = std::int64_t{1} << 40;

struct Member {
  std::string_view name;
  std::int64_t* value;
};

base::Status read_counts(const Json& json, const std::vector<Member>& members) {
  for (const Member& member : members) {
    const Json* value = json.find(member.name);
    if (value == nullptr || !value->is_integer() || value->as_integer() < 0 ||
        value->as_integer() > kCountMax) {
      return fail(ErrorCode::kProtocol,
                  fmt::format("{}: must be a count of 0 to {}", member.name, kCountMax));
    }
    *member.value = value->as_integer();
  }
  return {};
}

}  // namespace

Json encode_workload(const core::Workload& workload) {
  const core::Workload::Counters& counters = workload.counters();
  const core::TrainingSet& fleet = workload.trained_fleet();
  Json classes = Json::array();
  for (const auto& [name, gpus] : fleet.class_gpus) {
    classes.push(Json::object({{"name", name}, {"gpus", gpus}}));
  }
  Json json = Json::object();
  json.set("seen", counters.seen)
      .set("nextTraining", counters.next_training)
      .set("trainings", counters.trainings)
      .set("halvings", counters.halvings)
      .set("turnover", std::int64_t{counters.turnover})
      .set("trainedTurnover", std::int64_t{fleet.turnover})
      .set("windowArrived", counters.window_arrived)
      .set("windowPlaced", counters.window_placed)
      .set("windowLeft", counters.window_left)
      .set("fleetCpu", fleet.fleet_cpu_milli)
      .set("fleetGpus", fleet.fleet_gpus)
      .set("classes", std::move(classes));
  return json;
}

Json encode_workload_shape(const core::Workload& workload, std::size_t index) {
  const core::Workload::Shape& shape = workload.shapes().at(index);
  Json json = Json::object();
  json.set("cpuMilli", shape.shape.cpu_milli)
      .set("shareMib", shape.shape.share_mib)
      .set("wholeGpus", std::int64_t{shape.shape.whole_gpus})
      .set("models", shape.shape.models)
      .set("count", shape.count)
      .set("trainedCount", shape.built_count)
      .set("trainings", workload.counters().trainings)
      .set("halvings", workload.counters().halvings);
  return json;
}

base::Status WorkloadRecords::add_counters(const std::string& cluster, const Json& json) {
  Head head;
  core::Workload::Counters& counters = head.counters;
  std::int64_t turnover = 0;
  std::int64_t trained_turnover = 0;
  if (auto status = read_counts(json, {{"seen", &counters.seen},
                                       {"nextTraining", &counters.next_training},
                                       {"trainings", &counters.trainings},
                                       {"halvings", &counters.halvings},
                                       {"turnover", &turnover},
                                       {"trainedTurnover", &trained_turnover},
                                       {"windowArrived", &counters.window_arrived},
                                       {"windowPlaced", &counters.window_placed},
                                       {"windowLeft", &counters.window_left},
                                       {"fleetCpu", &head.fleet.fleet_cpu_milli},
                                       {"fleetGpus", &head.fleet.fleet_gpus}});
      !status) {
    return status;
  }
  if (turnover > 4 || trained_turnover > 4) {
    return fail(ErrorCode::kProtocol, "turnover: must be 0 to 4");
  }
  counters.turnover = static_cast<int>(turnover);
  head.fleet.turnover = static_cast<int>(trained_turnover);
  for (const Json& entry : json.array_or_empty("classes")) {
    std::int64_t gpus = 0;
    if (auto status = read_counts(entry, {{"gpus", &gpus}}); !status) return status;
    head.fleet.class_gpus[entry.string_or("name", "")] = gpus;
  }
  heads_[cluster] = std::move(head);
  return {};
}

base::Status WorkloadRecords::add_shape(const std::string& cluster, std::int64_t index,
                                        const Json& json) {
  StoredShape stored;
  core::RequestShape& shape = stored.shape.shape;
  if (auto status = read_counts(json, {{"cpuMilli", &shape.cpu_milli},
                                       {"shareMib", &shape.share_mib},
                                       {"count", &stored.shape.count},
                                       {"trainedCount", &stored.shape.built_count},
                                       {"trainings", &stored.trainings},
                                       {"halvings", &stored.halvings}});
      !status) {
    return status;
  }
  const std::int64_t whole = json.integer_or("wholeGpus", 0);
  if (whole < core::RequestShape::kAllGpus || whole > base::limits::kWholeGpusMax * 10) {
    return fail(ErrorCode::kProtocol, "wholeGpus: is out of range");
  }
  shape.whole_gpus = static_cast<int>(whole);
  shape.models = json.string_or("models", "");
  shapes_[cluster][index] = std::move(stored);
  return {};
}

base::Status WorkloadRecords::restore(core::State& state) const {
  for (const auto& [cluster, stored] : shapes_) {
    if (heads_.count(cluster) == 0) {
      return fail(ErrorCode::kProtocol,
                  fmt::format("record workload/{}: is missing, but has shapes", cluster));
    }
  }
  for (const auto& [cluster, head] : heads_) {
    // Also where the cluster is not there any more: one of that name may be made again.
    std::vector<core::Workload::Shape> shapes;
    const auto found = shapes_.find(cluster);
    if (found != shapes_.end()) {
      for (const auto& [index, stored] : found->second) {
        if (index != static_cast<std::int64_t>(shapes.size()) ||
            shapes.size() == core::kWorkloadShapes) {
          return fail(
              ErrorCode::kProtocol,
              fmt::format("record workload-shape/{}: shape {} is missing", cluster, shapes.size()));
        }
        core::Workload::Shape shape = stored.shape;
        const std::int64_t halvings =
            std::clamp<std::int64_t>(head.counters.halvings - stored.halvings, 0, 62);
        shape.count >>= halvings;
        if (stored.trainings < head.counters.trainings) shape.built_count = shape.count;
        shapes.push_back(std::move(shape));
      }
    }
    state.workloads[cluster] =
        core::Workload::restored(head.counters, std::move(shapes), head.fleet);
  }
  return {};
}

}  // namespace cotenant::codec
