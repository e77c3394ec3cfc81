#include "replay/openb_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/limits.h"
#include "replay/csv_table.h"

namespace cotenant::replay {
namespace {

using base::fail;

constexpr std::size_t kTraceNodesMax = 200'000;
constexpr std::size_t kTracePodsMax = 2'000'000;
// Far above any machine, and small enough that no sum overflows.
constexpr std::int64_t kCpuMilliMax = 1'000'000;
constexpr std::int64_t kMemoryMibMax = std::int64_t{1} << 30;

enum NodeColumn { kNodeName, kNodeCpu, kNodeMemory, kNodeGpus, kNodeModel };
enum PodColumn { kPodName, kPodCpu, kPodMemory, kPodGpus, kPodMilli, kPodModels };

base::Status check_name(const CsvTable& table, std::size_t row, std::size_t column,
                        std::set<std::string_view>& names) {
  const std::string_view name = table.text(row, column);
  if (name.empty()) return fail(table.error(row, column, "must not be empty"));
  if (!names.insert(name).second) {
    return fail(table.error(row, column, "the name stands there twice"));
  }
  return {};
}

base::Result<std::vector<TraceNode>> read_nodes(const std::string& path) {
  const auto table = CsvTable::read(
      path, {{"sn"}, {"cpu_milli"}, {"memory_mib"}, {"gpu"}, {"model"}}, kTraceNodesMax);
  if (!table) return fail(table.error());
  std::vector<TraceNode> nodes;
  std::set<std::string_view> names;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    if (auto status = check_name(*table, row, kNodeName, names); !status) {
      return fail(status.error());
    }
    const auto cpu = table->number(row, kNodeCpu, 0, kCpuMilliMax);
    if (!cpu) return fail(cpu.error());
    const auto memory = table->number(row, kNodeMemory, 0, kMemoryMibMax);
    if (!memory) return fail(memory.error());
    const auto gpus =
        table->number(row, kNodeGpus, 0, static_cast<std::int64_t>(base::limits::kGpusPerInstance));
    if (!gpus) return fail(gpus.error());
    const std::string_view model = table->text(row, kNodeModel);
    if (*gpus > 0 && model.empty()) return fail(table->error(row, kNodeModel, "must not be empty"));
    nodes.push_back({std::string(table->text(row, kNodeName)), *cpu, *memory,
                     static_cast<int>(*gpus), std::string(model)});
  }
  return nodes;
}

// A pod that no node's model may serve is a mistake in the files, not a workload.
base::Status check_models(const CsvTable& table, std::size_t row,
                          const std::set<std::string>& known) {
  const std::string_view models = table.text(row, kPodModels);
  for (std::size_t from = 0; from <= models.size();) {
    const std::size_t bar = std::min(models.find('|', from), models.size());
    if (known.count(std::string(models.substr(from, bar - from))) > 0) return {};
    from = bar + 1;
  }
  std::string names;
  for (const std::string& model : known) names += (names.empty() ? "" : ", ") + model;
  return fail(table.error(row, kPodModels, "no node has such a model; there are " + names));
}

base::Result<std::vector<TracePod>> read_pods(const std::string& path,
                                              const std::set<std::string>& models) {
  const auto table = CsvTable::read(
      path,
      {{"name"}, {"cpu_milli"}, {"memory_mib"}, {"num_gpu"}, {"gpu_milli"}, {"gpu_spec", false}},
      kTracePodsMax);
  if (!table) return fail(table.error());
  std::vector<TracePod> pods;
  std::set<std::string_view> names;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    if (auto status = check_name(*table, row, kPodName, names); !status)
      return fail(status.error());
    const auto cpu = table->number(row, kPodCpu, 0, kCpuMilliMax);
    if (!cpu) return fail(cpu.error());
    const auto memory = table->number(row, kPodMemory, 0, kMemoryMibMax);
    if (!memory) return fail(memory.error());
    const auto gpus =
        table->number(row, kPodGpus, 0, static_cast<std::int64_t>(base::limits::kGpusPerInstance));
    if (!gpus) return fail(gpus.error());
    TracePod pod{
        std::string(table->text(row, kPodName)), *cpu, *memory, static_cast<int>(*gpus), 0, ""};
    if (pod.gpus > 0) {
      const auto milli = table->number(row, kPodMilli, pod.gpus == 1 ? 1 : 1000, 1000);
      if (!milli) return fail(milli.error());
      pod.gpu_milli = *milli;
      pod.models = table->text(row, kPodModels);
      if (!pod.models.empty()) {
        if (auto status = check_models(*table, row, models); !status) return fail(status.error());
      }
    }
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace

base::Result<Trace> read_trace(const std::string& nodes_path, const std::string& pods_path) {
  Trace trace;
  auto nodes = read_nodes(nodes_path);
  if (!nodes) return fail(nodes.error());
  trace.nodes = std::move(*nodes);
  std::set<std::string> models;
  for (const TraceNode& node : trace.nodes) {
    if (node.gpus > 0) models.insert(node.model);
  }
  if (models.empty()) {
    return fail(base::ErrorCode::kInvalidParameter,
                nodes_path + ": gpu: no node has a GPU, there is nothing to replay");
  }
  auto pods = read_pods(pods_path, models);
  if (!pods) return fail(pods.error());
  trace.pods = std::move(*pods);
  const bool any_gpu = std::any_of(trace.pods.begin(), trace.pods.end(),
                                   [](const TracePod& pod) { return pod.gpus > 0; });
  if (!any_gpu) {
    return fail(base::ErrorCode::kInvalidParameter,
                pods_path + ": num_gpu: no pod asks for a GPU, there is nothing to replay");
  }
  return trace;
}

std::optional<std::int64_t> model_mib(std::string_view model) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kModels{{{"P100", 16280},
                                                                              {"T4", 15109},
                                                                              {"V100M16", 16160},
                                                                              {"V100M32", 32510},
                                                                              {"A10", 22731},
                                                                              {"G1", 10000},
                                                                              {"G2", 20000},
                                                                              {"G3", 30000}}};
  for (const auto& [name, mib] : kModels) {
    if (name == model) return mib;
  }
  return std::nullopt;
}

}  // namespace cotenant::replay
