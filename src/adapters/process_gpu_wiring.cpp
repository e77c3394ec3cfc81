#include "adapters/process_gpu_wiring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "adapters/cdi_registry.h"
#include "adapters/gpu_wiring.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

constexpr const char* kCudaDevices = "CUDA_VISIBLE_DEVICES";
constexpr const char* kNvidiaDevices = "NVIDIA_VISIBLE_DEVICES";
// CUDA programming guide: the first entry that names no device ends the list.
constexpr const char* kNoCudaDevice = "-1";

base::Result<CdiEdits> edits_for(const std::string& cdi_dir,
                                 const std::vector<std::string>& uuids) {
  if (cdi_dir.empty()) return CdiEdits{};
  const base::Result<CdiRegistry> registry = CdiRegistry::load(cdi_dir);
  if (!registry && registry.error().code == ErrorCode::kNotFound) return CdiEdits{};
  if (!registry) return base::fail(registry.error());
  base::Result<CdiEdits> edits = registry->resolve(kNvidiaCdiKind, uuids);
  if (!edits && edits.error().code == ErrorCode::kNotFound) return CdiEdits{};
  return edits;
}

}  // namespace

ProcessGpuWiring::ProcessGpuWiring(std::string cdi_dir) : cdi_dir_(std::move(cdi_dir)) {}

base::Status ProcessGpuWiring::wire(const ports::EngineInfo&,
                                    const std::vector<std::string>& gpu_uuids,
                                    ports::ContainerSpec& spec) const {
  if (gpu_uuids.empty()) {
    set_environment(spec, kCudaDevices, kNoCudaDevice);
    wire_no_gpu(spec);
    return {};
  }
  const base::Result<CdiEdits> edits = edits_for(cdi_dir_, gpu_uuids);
  if (!edits) {
    return base::fail(ErrorCode::kUnavailable,
                      fmt::format("cannot give the process GPU {}: {}", fmt::join(gpu_uuids, ", "),
                                  edits.error().message));
  }
  for (const ports::EnvironmentVariable& variable : edits->environment) {
    set_environment(spec, variable.name, variable.value);
  }
  for (const CdiMount& mount : edits->mounts) {
    spec.mounts.push_back({mount.host_path, mount.container_path, mount.read_only()});
  }
  const std::string uuids = fmt::format("{}", fmt::join(gpu_uuids, ","));
  set_environment(spec, kCudaDevices, uuids);
  set_environment(spec, kNvidiaDevices, uuids);
  return {};
}

}  // namespace cotenant::adapters
