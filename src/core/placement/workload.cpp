#include "core/placement/workload.h"

#include <algorithm>
#include <utility>

namespace cotenant::core {
namespace {

constexpr std::int64_t kFirstTraining = 100;
constexpr std::int64_t kTrainingStepMax = 8192;
constexpr std::int64_t kForgetAbove = 16384;
constexpr std::int64_t kTurnoverWindow = 512;
constexpr int kTurnoverMax = 4;

}  // namespace

RequestShape shape_of(const Fleet& fleet, const PlacementQuery& query) {
  const TaskNeed& need = query.need;
  RequestShape shape;
  shape.cpu_milli = need.cpu_units == 0 ? 100 : fleet.need_cpu_milli(need.cpu_units);
  shape.share_mib = need.gpu.is_shared() ? need.gpu.shared_memory_mib : 0;
  shape.whole_gpus = need.gpu.whole_all ? RequestShape::kAllGpus : need.gpu.whole_count;
  if (shape.has_gpu()) shape.models = query.models;
  return shape;
}

std::size_t Workload::find_or_add(const RequestShape& shape) {
  const auto found = index_.find(shape);
  if (found != index_.end()) return found->second;
  std::size_t at = shapes_.size();
  if (at < kWorkloadShapes) {
    shapes_.push_back({shape});
  } else {
    const auto rarest =
        std::min_element(shapes_.begin(), shapes_.end(),
                         [](const Shape& a, const Shape& b) { return a.count < b.count; });
    at = static_cast<std::size_t>(rarest - shapes_.begin());
    total_ -= rarest->count;
    index_.erase(rarest->shape);
    *rarest = {shape};
  }
  index_.emplace(shape, at);
  return at;
}

// Every 512 arrivals: departures per placement in the window. Up from (q + 1/2)/4 on, down below
// (q - 3/2)/4, so that it does not swing.
bool Workload::turnover_moved() {
  if (++counters_.window_arrived < kTurnoverWindow) return false;
  const std::int64_t placed = counters_.window_placed;
  const std::int64_t left = counters_.window_left;
  counters_.window_arrived = counters_.window_placed = counters_.window_left = 0;
  int& turnover = counters_.turnover;
  if (placed == 0) return false;
  if (turnover < kTurnoverMax && left * 8 >= placed * (2 * turnover + 1)) {
    ++turnover;
    return true;
  }
  if (turnover > 0 && left * 8 < placed * (2 * turnover - 3)) {
    --turnover;
    return true;
  }
  return false;
}

std::size_t Workload::arrive(const Fleet& fleet, const RequestShape& shape) {
  bool due = turnover_moved();
  const std::size_t at = find_or_add(shape);
  ++shapes_[at].count;
  ++total_;
  ++counters_.seen;
  if (counters_.seen >= counters_.next_training) {
    const std::int64_t half = std::max<std::int64_t>(counters_.seen / 2, 1);
    counters_.next_training = counters_.seen + std::min(half, kTrainingStepMax);
    due = true;
    if (total_ > kForgetAbove) {
      total_ = 0;
      ++counters_.halvings;
      for (Shape& each : shapes_) total_ += each.count /= 2;
    }
  }
  if (due && counters_.seen >= kFirstTraining) train(fleet);
  return at;
}

void Workload::train(const Fleet& fleet) {
  ++counters_.trainings;
  for (Shape& shape : shapes_) shape.built_count = shape.count;
  fleet_ = {};
  fleet_.fleet_cpu_milli = fleet.total_cpu_milli();
  fleet_.fleet_gpus = fleet.total_gpus();
  for (const NodeClass& each : fleet.classes()) fleet_.class_gpus[each.name()] += each.gpus;
  fleet_.turnover = counters_.turnover;
}

TrainingSet Workload::training_set() const {
  TrainingSet set = fleet_;
  for (const Shape& shape : shapes_) {
    if (shape.built_count > 0) set.shapes.push_back({shape.shape, shape.built_count});
  }
  return set;
}

Workload Workload::restored(Counters counters, std::vector<Shape> shapes, TrainingSet fleet) {
  Workload workload;
  workload.counters_ = counters;
  workload.shapes_ = std::move(shapes);
  workload.fleet_ = std::move(fleet);
  for (std::size_t at = 0; at < workload.shapes_.size(); ++at) {
    workload.index_.emplace(workload.shapes_[at].shape, at);
    workload.total_ += workload.shapes_[at].count;
  }
  return workload;
}

}  // namespace cotenant::core
