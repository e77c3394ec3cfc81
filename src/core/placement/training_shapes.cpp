#include "core/placement/training_shapes.h"

#include <algorithm>
#include <string_view>

namespace cotenant::core {
namespace {

bool names_model(std::string_view models, std::string_view model) {
  for (std::size_t from = 0; from <= models.size();) {
    const std::size_t bar = std::min(models.find('|', from), models.size());
    if (models.substr(from, bar - from) == model) return true;
    from = bar + 1;
  }
  return false;
}

ShapeInClass in_class(const RequestShape& shape, const NodeClass& node_class, bool allowed) {
  ShapeInClass out;
  if (!shape.has_gpu()) {
    out.allowed = allowed;
    return out;
  }
  if (shape.share_mib > 0) {
    out.gpus = 1;
    const std::int64_t size_mib = std::max<std::int64_t>(node_class.gpu_mib, 1);
    const std::int64_t milli =
        std::min<std::int64_t>((shape.share_mib * 1000 + size_mib - 1) / size_mib, 1000);
    out.milli = static_cast<int>(milli);
    out.allowed = allowed && node_class.gpu_mib >= shape.share_mib;
    return out;
  }
  out.milli = 1000;
  out.gpus =
      shape.whole_gpus == RequestShape::kAllGpus ? node_class.gpus_per_node : shape.whole_gpus;
  out.allowed = allowed && out.gpus > 0;
  return out;
}

}  // namespace

std::vector<bool> classes_of_models(const Fleet& fleet, const std::string& models) {
  std::vector<bool> classes;
  for (const NodeClass& each : fleet.classes()) {
    classes.push_back(models.empty() || names_model(models, each.model));
  }
  return classes;
}

std::vector<std::int64_t> trained_class_gpus(const Fleet& fleet, const TrainingSet& set) {
  std::vector<std::int64_t> gpus;
  for (const NodeClass& each : fleet.classes()) {
    const auto found = set.class_gpus.find(each.name());
    gpus.push_back(found == set.class_gpus.end() ? 0 : found->second);
  }
  return gpus;
}

std::vector<TrainingShape> training_shapes(const Fleet& fleet, const TrainingSet& set) {
  const std::vector<std::int64_t> class_gpus = trained_class_gpus(fleet, set);
  std::vector<TrainingShape> shapes;
  shapes.reserve(set.shapes.size());
  for (const CountedShape& counted : set.shapes) {
    TrainingShape out;
    out.shape = &counted.shape;
    out.count = counted.count;
    const std::vector<bool> classes = classes_of_models(fleet, counted.shape.models);
    std::int64_t most = -1;
    for (std::size_t id = 0; id < classes.size(); ++id) {
      const ShapeInClass here = in_class(counted.shape, fleet.classes()[id], classes[id]);
      const std::int64_t weight = here.allowed ? class_gpus[id] : -1;
      if (id == 0 || weight > most) {
        out.milli = here.milli;
        out.gpus = here.gpus;
        most = weight;
      }
      out.in_class.push_back(here);
    }
    shapes.push_back(std::move(out));
  }
  return shapes;
}

std::int64_t cpu_per_gpu(const TrainingSet& set, const std::vector<TrainingShape>& shapes) {
  std::int64_t cpu_all = 0;
  std::int64_t cpu_gpu = 0;
  std::int64_t gpu_milli = 0;
  for (const TrainingShape& each : shapes) {
    const std::int64_t cpu = each.count * each.shape->cpu_milli;
    cpu_all += cpu;
    if (!each.shape->has_gpu()) continue;
    cpu_gpu += cpu;
    gpu_milli += each.count * each.gpu_milli();
  }
  if (gpu_milli == 0) return 0;
  const bool scarce = cpu_all * set.fleet_gpus > set.fleet_cpu_milli * (gpu_milli / 1000);
  return (scarce ? cpu_all : cpu_gpu) * 1000 / gpu_milli;
}

}  // namespace cotenant::core
