#include "agent/registration.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>

#include "base/limits.h"
#include "base/units.h"

namespace cotenant::agent {
namespace {

using base::ErrorCode;
using base::fail;
using ports::GpuInfo;

// SSH and the engine's TCP ports, as the ECS agent reserves them.
constexpr int kReservedPorts[] = {22, 2375, 2376};
// ECS API reference, Attribute.value: at most 128 letters, digits, - _ . @ / \ : and spaces.
constexpr std::size_t kAttributeChars = 128;

std::string attribute_value(std::string_view text) {
  std::string value(text.substr(0, kAttributeChars));
  for (char& c : value) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    std::string_view("-_.@/\\: ").find(c) != std::string_view::npos;
    if (!ok) c = '-';
  }
  return value;
}

std::string models(const std::vector<GpuInfo>& gpus) {
  std::set<std::string> names;
  for (const GpuInfo& gpu : gpus) names.insert(gpu.model);
  return fmt::format("{}", fmt::join(names, "/"));
}

// The first condition for GPU sharing that is not met, in ECS's words where it has some.
std::optional<std::string> sharing_obstacle(const std::vector<GpuInfo>& gpus, bool mps_present) {
  if (gpus.empty()) return "no NVIDIA GPU present";
  if (!mps_present) return "MPS control binary not present on host";
  for (const GpuInfo& gpu : gpus) {
    if (gpu.is_vgpu) return "instance has an NVIDIA vGPU slice, where we do not support MPS";
  }
  for (const GpuInfo& gpu : gpus) {
    if (gpu.mig_enabled) {
      return fmt::format("GPU {} is in MIG mode, where we do not support MPS", gpu.uuid);
    }
    if (gpu.memory_mib.value_or(0) <= 0) {
      return fmt::format("the memory of GPU {} cannot be read", gpu.uuid);
    }
  }
  return std::nullopt;
}

// What is known of the GPUs from before, for a driver that does not answer.
void keep_known_gpus(const core::InstanceRegistration& known, const std::string& why,
                     core::InstanceRegistration& registration) {
  registration.gpus = known.gpus;
  for (core::GpuDevice& gpu : registration.gpus) gpu.unavailable = why;
  registration.driver_version = known.driver_version;
  registration.gpu_simulated = known.gpu_simulated;
  for (const char* name :
       {"cotenant.driver-version", "cotenant.gpu-model", "cotenant.memory-enforcement"}) {
    const auto found = known.attributes.find(name);
    if (found != known.attributes.end()) registration.attributes.insert(*found);
  }
  const std::string sharing(core::kSharingAttribute);
  if (known.attributes.contains(sharing)) registration.attributes[sharing] = "";
}

void keep_lost_gpus(const core::InstanceRegistration& known,
                    core::InstanceRegistration& registration) {
  for (std::size_t i = 0; i < known.gpus.size(); ++i) {
    core::GpuDevice lost = known.gpus[i];
    const bool there =
        std::any_of(registration.gpus.begin(), registration.gpus.end(),
                    [&](const core::GpuDevice& gpu) { return gpu.uuid == lost.uuid; });
    if (there || registration.gpus.size() >= base::limits::kGpusPerInstance) continue;
    lost.unavailable = "the driver does not show it any more";
    const std::size_t at = std::min(i, registration.gpus.size());
    registration.gpus.insert(registration.gpus.begin() + static_cast<std::ptrdiff_t>(at),
                             std::move(lost));
  }
}

void add_gpus(const RegistrationInput& input, BuiltRegistration& built) {
  core::InstanceRegistration& registration = built.registration;
  const base::Error* const error = !input.driver ? &input.driver.error()
                                   : !input.gpus ? &input.gpus.error()
                                                 : nullptr;
  if (error != nullptr && input.known && !input.known->gpus.empty()) {
    const std::string why =
        ("the driver does not answer: " + error->message).substr(0, base::limits::kReasonChars);
    built.warnings.push_back("the GPUs are out of service: " + why);
    return keep_known_gpus(*input.known, why, registration);
  }
  if (error != nullptr) {
    built.warnings.push_back("no GPUs are registered: " + error->message);
    return;
  }
  registration.driver_version = input.driver->version;
  registration.gpu_simulated = input.driver->simulated;
  registration.attributes["cotenant.driver-version"] = attribute_value(input.driver->version);
  for (const GpuInfo& gpu : *input.gpus) {
    registration.gpus.push_back(
        {gpu.uuid, gpu.model, gpu.memory_mib, client_slots(gpu, input.driver->cuda_version)});
  }
  if (input.known) keep_lost_gpus(*input.known, registration);
  if (!input.gpus->empty()) {
    registration.attributes["cotenant.gpu-model"] = attribute_value(models(*input.gpus));
    registration.attributes["cotenant.memory-enforcement"] = "client";
  }
  if (const auto obstacle = sharing_obstacle(*input.gpus, input.mps_control_present)) {
    built.warnings.push_back(
        fmt::format("attribute {} is withheld: {}", core::kSharingAttribute, *obstacle));
  } else {
    registration.attributes[std::string(core::kSharingAttribute)] = "";
  }
}

}  // namespace

int client_slots(const GpuInfo& gpu, int cuda_version) {
  constexpr int kVolta = 7;
  constexpr int kCuda13_1 = 13010;
  if (gpu.compute_capability_major < kVolta) return 16;
  return cuda_version >= kCuda13_1 ? 60 : 48;
}

BuiltRegistration build_registration(const RegistrationInput& input) {
  BuiltRegistration built;
  core::InstanceRegistration& registration = built.registration;
  registration.id = input.instance_id;
  registration.cluster = input.cluster;
  registration.agent_version = input.agent_version;
  registration.engine_version = input.engine.name + " " + input.engine.version;
  registration.cpu_units =
      (input.engine.cpu_count > 0 ? input.engine.cpu_count : input.machine_cores) *
      base::kCpuUnitsPerCore;
  registration.memory_mib =
      input.engine.memory_mib > 0 ? input.engine.memory_mib : input.machine_memory_mib;

  std::set<int> ports(std::begin(kReservedPorts), std::end(kReservedPorts));
  if (input.api_port) ports.insert(*input.api_port);
  registration.reserved_ports.assign(ports.begin(), ports.end());

  registration.attributes["ecs.os-type"] = "linux";
  registration.attributes["ecs.cpu-architecture"] = input.cpu_architecture;
  if (!input.engine.has_isolation) {
    registration.attributes[std::string(core::kIsolationAttribute)] = core::kNoIsolation;
    built.warnings.push_back(
        "containers are processes of this machine: no image, no isolation, no limit of memory and "
        "CPU; GPU memory is limited by MPS");
  }
  add_gpus(input, built);
  return built;
}

std::vector<std::string> gpu_changes(const core::InstanceRegistration& before,
                                     const core::InstanceRegistration& now) {
  const auto find = [](const core::InstanceRegistration& in, const std::string& uuid) {
    const auto found = std::find_if(in.gpus.begin(), in.gpus.end(),
                                    [&](const auto& gpu) { return gpu.uuid == uuid; });
    return found == in.gpus.end() ? nullptr : &*found;
  };
  std::vector<std::string> lines;
  for (const core::GpuDevice& gpu : now.gpus) {
    const core::GpuDevice* was = find(before, gpu.uuid);
    if (was == nullptr) {
      lines.push_back(fmt::format("GPU {} is there now", gpu.uuid));
    } else if (!gpu.unavailable.empty() && gpu.unavailable != was->unavailable) {
      lines.push_back(fmt::format("GPU {} is out of service: {}", gpu.uuid, gpu.unavailable));
    } else if (gpu.unavailable.empty() && !was->unavailable.empty()) {
      lines.push_back(fmt::format("GPU {} is back in service", gpu.uuid));
    }
  }
  for (const core::GpuDevice& gpu : before.gpus) {
    if (find(now, gpu.uuid) == nullptr) lines.push_back(fmt::format("GPU {} is gone", gpu.uuid));
  }
  const std::string sharing(core::kSharingAttribute);
  if (before.attributes.contains(sharing) != now.attributes.contains(sharing)) {
    lines.push_back(now.attributes.contains(sharing) ? "the GPUs can be shared now"
                                                     : "the GPUs cannot be shared any more");
  }
  return lines;
}

bool find_program(const std::string& program) {
  const auto executable = [](const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
  };
  if (program.empty()) return false;
  if (program.find('/') != std::string::npos) return executable(program);
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable == nullptr ? "" : variable;
  while (!path.empty()) {
    const std::size_t colon = std::min(path.find(':'), path.size());
    if (colon > 0 && executable(fmt::format("{}/{}", path.substr(0, colon), program))) return true;
    path.remove_prefix(std::min(colon + 1, path.size()));
  }
  return false;
}

base::Result<std::int64_t> memory_mib_of_machine() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::int64_t kib = 0;
  while (file >> word) {
    if (word == "MemTotal:" && file >> kib && kib > 0) return kib / 1024;
  }
  return fail(ErrorCode::kIo, "/proc/meminfo: has no MemTotal; is /proc mounted?");
}

std::string cpu_architecture_of_machine() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  const std::string_view machine = name.machine;
  return machine == "aarch64" ? "arm64" : std::string(machine);
}

}  // namespace cotenant::agent
