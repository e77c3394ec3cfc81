// Short builders of core values for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/instance.h"
#include "core/task_definition.h"

namespace cotenant::core::test {

// An 80 GiB GPU of today, as round numbers: two halves fill it.
inline constexpr std::int64_t kGpuMib = 80000;

struct HeldShare {
  std::string task_id;
  std::int64_t memory_mib = 0;
  int containers = 1;
};

// A GPU and what is held of it. The UUID is made by instance().
struct GpuSetup {
  std::optional<std::int64_t> memory_mib = kGpuMib;
  int client_slots = 48;
  std::vector<HeldShare> shares = {};
  std::string dedicated_to = {};  // a task id; empty: to nobody
};

inline GpuSetup idle_gpu(std::int64_t memory_mib = kGpuMib) {
  return {memory_mib};
}
inline GpuSetup unreadable_gpu() {
  return {std::nullopt};
}
inline GpuSetup dedicated_gpu(std::string task_id) {
  return {kGpuMib, 48, {}, std::move(task_id)};
}
inline GpuSetup shared_gpu(std::vector<HeldShare> shares, std::int64_t memory_mib = kGpuMib) {
  return {memory_mib, 48, std::move(shares)};
}

inline std::string gpu_uuid(const std::string& instance_id, std::size_t gpu) {
  return "GPU-" + instance_id + "-" + std::to_string(gpu);
}

inline InstanceRegistration registration(const std::string& id, const std::vector<GpuSetup>& gpus,
                                         const std::string& cluster = "default") {
  InstanceRegistration registration;
  registration.id = id;
  registration.cluster = cluster;
  registration.cpu_units = 16 * 1024;
  registration.memory_mib = 64 * 1024;
  registration.attributes.emplace(kSharingAttribute, "");
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    registration.gpus.push_back(
        {gpu_uuid(id, gpu), "H100", gpus[gpu].memory_mib, gpus[gpu].client_slots});
  }
  return registration;
}

// A connected instance whose GPUs hold what `gpus` says.
inline Instance instance(const std::string& id, std::int64_t number,
                         const std::vector<GpuSetup>& gpus) {
  Instance instance;
  instance.registration = registration(id, gpus);
  instance.number = number;
  instance.agent_connected = true;
  instance.gpus = GpuLedger(instance.registration.gpus);
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    for (const HeldShare& share : gpus[gpu].shares) {
      instance.gpus.reserve_share(gpu, share.task_id, share.memory_mib, share.containers);
    }
    if (!gpus[gpu].dedicated_to.empty()) instance.gpus.reserve_whole(gpu, gpus[gpu].dedicated_to);
  }
  return instance;
}

inline TaskNeed share_need(std::int64_t memory_mib, int containers = 1) {
  TaskNeed need;
  need.gpu.shared_memory_mib = memory_mib;
  need.gpu.shared_containers = containers;
  return need;
}

inline TaskNeed whole_need(int count) {
  TaskNeed need;
  need.gpu.whole_count = count;
  return need;
}

inline TaskNeed all_gpus_need() {
  TaskNeed need;
  need.gpu.whole_all = true;
  return need;
}

inline ContainerDefinition container(const std::string& name, GpuRequest gpu = NoGpu{},
                                     bool essential = true) {
  ContainerDefinition container;
  container.name = name;
  container.image = "example/" + name;
  container.cpu_units = 256;
  container.memory_mib = 512;
  container.essential = essential;
  container.gpu = gpu;
  return container;
}

inline TaskDefinition definition(const std::string& family,
                                 std::vector<ContainerDefinition> containers) {
  TaskDefinition definition;
  definition.family = family;
  definition.containers = std::move(containers);
  definition.document = "{\"family\":\"" + family + "\"}";
  return definition;
}

}  // namespace cotenant::core::test
