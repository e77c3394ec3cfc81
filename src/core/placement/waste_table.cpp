#include "core/placement/waste_table.h"

#include <algorithm>

namespace cotenant::core {
namespace {

// A step is found by the core that it lies in; beyond so many, one after the other.
constexpr std::int64_t kCoreMilli = 1024;
constexpr std::int64_t kCoresIndexed = 1024;

void sort_distinct(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

void WasteTable::build(std::size_t classes, const std::vector<TrainingShape>& shapes,
                       const std::vector<std::int64_t>& weights, bool count_cpu_only) {
  weight_ = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (count_cpu_only || shapes[i].shape->has_gpu()) weight_ += weights[i];
  }
  classes_.clear();
  for (std::size_t id = 0; id < classes; ++id) {
    classes_.push_back(build_class(id, shapes, weights));
  }
}

// How many of the steps are not above this.
std::size_t WasteTable::Class::step_of(std::int64_t cpu_milli) const {
  if (cpu_milli < 0) return 0;
  const auto core = static_cast<std::size_t>(cpu_milli / kCoreMilli);
  std::size_t step = core_steps[std::min(core, core_steps.size() - 1)];
  while (step < cpu_steps.size() && cpu_steps[step] <= cpu_milli) ++step;
  return step;
}

void WasteTable::index_steps(Class& of) {
  std::size_t step = 0;
  for (std::int64_t core = 0; core <= kCoresIndexed; ++core) {
    while (step < of.cpu_steps.size() && of.cpu_steps[step] < core * kCoreMilli) ++step;
    of.core_steps.push_back(static_cast<std::uint16_t>(step));
    if (step == of.cpu_steps.size()) return;
  }
}

WasteTable::Class WasteTable::build_class(std::size_t id, const std::vector<TrainingShape>& shapes,
                                          const std::vector<std::int64_t>& weights) {
  Class out;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const ShapeInClass& here = shapes[i].in_class[id];
    if (weights[i] == 0 || !shapes[i].shape->has_gpu() || !here.allowed) continue;
    out.cpu_steps.push_back(shapes[i].shape->cpu_milli);
    if (shapes[i].shape->share_mib > 0) sizes.push_back(here.milli);
  }
  sort_distinct(out.cpu_steps);
  index_steps(out);
  sort_distinct(sizes);
  out.groups = sizes.size();
  for (std::size_t milli = 0; milli <= 1000; ++milli) {
    out.group[milli] = static_cast<std::uint16_t>(
        std::upper_bound(sizes.begin(), sizes.end(), static_cast<std::int64_t>(milli)) -
        sizes.begin());
  }
  const std::size_t steps = out.cpu_steps.size() + 1;
  const std::size_t width = out.groups + 1;
  out.served.assign(steps * width, 0);
  out.whole.assign(steps * kIdleCounts, 0);
  // Each shape's weight where it first counts; running sums make it count from there on.
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const ShapeInClass& here = shapes[i].in_class[id];
    if (weights[i] == 0 || !shapes[i].shape->has_gpu() || !here.allowed) continue;
    const auto step = static_cast<std::size_t>(
        std::lower_bound(out.cpu_steps.begin(), out.cpu_steps.end(), shapes[i].shape->cpu_milli) -
        out.cpu_steps.begin() + 1);
    if (shapes[i].shape->share_mib > 0) {
      out.served[step * width + out.group[static_cast<std::size_t>(here.milli)]] += weights[i];
    } else if (static_cast<std::size_t>(here.gpus) < kIdleCounts) {
      out.whole[step * kIdleCounts + static_cast<std::size_t>(here.gpus)] += weights[i];
    }
  }
  const auto run_up = [&](std::vector<std::int64_t>& table, std::size_t columns) {
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t column = 1; column < columns; ++column) {
        table[step * columns + column] += table[step * columns + column - 1];
      }
    }
    for (std::size_t at = columns; at < table.size(); ++at) table[at] += table[at - columns];
  };
  run_up(out.served, width);
  run_up(out.whole, kIdleCounts);
  return out;
}

WasteTable::Row WasteTable::row(ClassId id, std::int64_t cpu_milli) const {
  if (id >= classes_.size()) return {};
  const Class& from = classes_[id];
  const std::size_t step = from.step_of(cpu_milli);
  return {from.group.data(), from.served.data() + step * (from.groups + 1),
          from.whole.data() + step * kIdleCounts};
}

}  // namespace cotenant::core
