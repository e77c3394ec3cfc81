#include "driver/device_table.h"

#include <fmt/format.h>

#include "common/text.h"

namespace gpusim {
namespace {

constexpr uint64_t kFnvOffset = 0xcbf29ce484222325;
constexpr uint64_t kFnvPrime = 0x100000001b3;

uint64_t fnv1a(std::string_view text, uint64_t hash) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= kFnvPrime;
  }
  return hash;
}

uint64_t splitmix64(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::string known_models() {
  size_t count = 0;
  const GpuModel* models = gpu_models(&count);
  std::string names;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) names += ", ";
    names += models[i].name;
  }
  return names;
}

}  // namespace

std::variant<std::vector<const GpuModel*>, std::string> parse_gpu_spec(std::string_view spec) {
  std::vector<const GpuModel*> models;
  const auto refuse = [&](std::string_view part, std::string_view why) {
    return fmt::format(
        "--gpus '{}': part '{}' {}; expected NxMODEL[,NxMODEL...], for example 2xL4; "
        "known models: {}",
        spec, part, why, known_models());
  };
  std::string_view rest = spec;
  do {
    const std::string_view part = trim(take_field(&rest, ','));
    const size_t cross = part.find_first_of("xX");
    if (cross == std::string_view::npos) return refuse(part, "has no 'x' between count and model");
    uint64_t count = 0;
    if (!parse_number(part.substr(0, cross), &count) || count == 0) {
      return refuse(part, "does not begin with a count of at least 1");
    }
    const std::string_view name = part.substr(cross + 1);
    const GpuModel* model = find_gpu_model(name.data(), name.size());
    if (model == nullptr) return refuse(part, "names an unknown model");
    if (count > kMaxDevices - models.size()) {
      return refuse(part, fmt::format("exceeds the limit of {} GPUs", kMaxDevices));
    }
    models.insert(models.end(), count, model);
  } while (!rest.empty());
  if (trim(spec).ends_with(',')) return refuse("", "is empty");
  return models;
}

uint64_t default_seed(std::string_view machine_id, std::string_view folder) {
  return fnv1a(folder, fnv1a(std::string_view("\0", 1), fnv1a(machine_id, kFnvOffset)));
}

std::string device_uuid(uint64_t seed, uint32_t index) {
  uint64_t state = seed ^ (kFnvPrime * (index + 1));
  const uint64_t high = splitmix64(&state);
  const uint64_t low = splitmix64(&state);
  return fmt::format("GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

std::vector<DeviceInfo> make_devices(const std::vector<const GpuModel*>& models, uint64_t seed) {
  std::vector<DeviceInfo> devices;
  for (uint32_t index = 0; index < models.size(); ++index) {
    const GpuModel& model = *models[index];
    DeviceInfo info = {};
    copy_text(device_uuid(seed, index), info.uuid, sizeof info.uuid);
    copy_text(model.name, info.model, sizeof info.model);
    copy_text(model.marketing_name, info.name, sizeof info.name);
    info.total_bytes = model.total_mib * kMiB;
    info.reserved_bytes = model.reserved_mib * kMiB;
    info.context_overhead_bytes = model.context_overhead_mib * kMiB;
    info.mps_server_bytes = model.mps_server_mib * kMiB;
    info.minor = index;
    info.cc_major = model.cc_major;
    info.cc_minor = model.cc_minor;
    info.nvml_architecture = model.nvml_architecture;
    info.sm_count = model.sm_count;
    info.pci_domain = 0;
    info.pci_bus = 1 + index;  // at most 64, so one bus each
    info.pci_device = 0;
    info.pci_device_id = model.pci_device_id;
    info.pci_subsystem_id = model.pci_subsystem_id;
    info.client_slots = model.client_slots;
    info.bandwidth_mib_per_ms = model.bandwidth_mib_per_ms;
    devices.push_back(info);
  }
  return devices;
}

}  // namespace gpusim
