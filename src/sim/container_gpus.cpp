#include "sim/container_gpus.h"

#include <algorithm>

#include "agent/labels.h"

namespace cotenant::sim {

std::vector<std::string> gpus_of(const ports::ContainerState& state) {
  std::vector<std::string> uuids;
  std::string rest = agent::label_of(state, agent::kGpusLabel);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    uuids.push_back(rest.substr(0, comma));
    rest.erase(0, comma + 1);
  }
  return uuids;
}

bool is_sharing(const ports::ContainerState& state) {
  return agent::label_of(state, agent::kGpuModeLabel) == agent::kGpuModeMps;
}

}  // namespace cotenant::sim
