#include "driver/device_table.h"

#include <fmt/format.h>
#include <strings.h>

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

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

// "-6Q": a vGPU type's framebuffer in GiB and series (Q workstation, C compute).
bool parse_vgpu(std::string_view text, uint32_t* gib) {
  uint64_t value = 0;
  if (text.size() < 2 ||
      (text.back() != 'Q' && text.back() != 'q' && text.back() != 'C' && text.back() != 'c')) {
    return false;
  }
  text.remove_suffix(1);
  if (!parse_number(text, &value) || value == 0 || value > 1024) return false;
  *gib = static_cast<uint32_t>(value);
  return true;
}

std::string add_mig(std::string_view text, GpuSpec* spec) {
  uint32_t compute = 0;
  uint32_t memory = 0;
  do {
    const std::string_view profile = trim(take_field(&text, '+'));
    size_t found = kMigProfiles;
    std::string known;
    for (size_t i = 0; i < kMigProfiles; ++i) {
      if (spec->model->mig_profiles[i] == nullptr) return "has no MIG";
      known += fmt::format("{}{}", i == 0 ? "" : ", ", spec->model->mig_profiles[i]);
      if (equal_ignoring_case(profile, spec->model->mig_profiles[i])) found = i;
    }
    if (found == kMigProfiles) {
      return fmt::format("names the unknown MIG profile '{}'; known: {}", profile, known);
    }
    compute += kMigSlices[found].compute;
    memory += kMigSlices[found].memory;
    spec->mig.push_back(found);
  } while (!text.empty());
  if (compute > 7 || memory > 8) return "has more MIG devices than the GPU has slices";
  return "";
}

}  // namespace

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

std::variant<GpuSpec, std::string> parse_gpu_model(std::string_view text) {
  GpuSpec spec;
  std::string_view mig = text;
  const std::string_view name = trim(take_field(&mig, ':'));
  spec.model = find_gpu_model(name.data(), name.size());
  const size_t dash = name.rfind('-');
  if (spec.model == nullptr && dash != std::string_view::npos) {
    spec.model = find_gpu_model(name.data(), dash);
    if (spec.model != nullptr && !parse_vgpu(name.substr(dash + 1), &spec.vgpu_gib)) {
      spec.model = nullptr;
    }
  }
  if (spec.model == nullptr) return std::string("names an unknown model");
  if (spec.vgpu_gib * 1024 > spec.model->total_mib) {
    return fmt::format("is a vGPU with more memory than the GPU's {} MiB", spec.model->total_mib);
  }
  if (text.find(':') == std::string_view::npos) return spec;
  if (spec.vgpu_gib != 0) return std::string("is a vGPU, which has no MIG devices");
  if (trim(mig).empty()) return std::string("has no MIG profile behind its ':'");
  if (std::string error = add_mig(mig, &spec); !error.empty()) return error;
  return spec;
}

std::variant<std::vector<GpuSpec>, std::string> parse_gpu_spec(std::string_view spec) {
  std::vector<GpuSpec> gpus;
  size_t devices = 0;
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
    const auto gpu = parse_gpu_model(part.substr(cross + 1));
    if (const auto* error = std::get_if<std::string>(&gpu)) return refuse(part, *error);
    const size_t each = 1 + std::get<GpuSpec>(gpu).mig.size();
    if (count > (kMaxDevices - devices) / each) {
      return refuse(part, fmt::format("exceeds the limit of {} GPUs", kMaxDevices));
    }
    devices += count * each;
    gpus.insert(gpus.end(), count, std::get<GpuSpec>(gpu));
  } while (!rest.empty());
  if (trim(spec).ends_with(',')) return refuse("", "is empty");
  return gpus;
}

size_t count_devices(const std::vector<GpuSpec>& gpus) {
  size_t count = gpus.size();
  for (const GpuSpec& gpu : gpus) count += gpu.mig.size();
  return count;
}

uint64_t default_seed(std::string_view machine_id, std::string_view folder) {
  return fnv1a(folder, fnv1a(std::string_view("\0", 1), fnv1a(machine_id, kFnvOffset)));
}

std::string device_uuid(uint64_t seed, uint32_t index, uint32_t generation) {
  uint64_t state = (seed + kFnvOffset * generation) ^ (kFnvPrime * (index + 1));
  const uint64_t high = splitmix64(&state);
  const uint64_t low = splitmix64(&state);
  return fmt::format("GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

namespace {

DeviceInfo make_gpu(const GpuSpec& spec, uint32_t index, uint64_t seed, int cuda_version) {
  const GpuModel& model = *spec.model;
  DeviceInfo info = {};
  copy_text(spec.uuid.empty() ? device_uuid(seed, index) : spec.uuid, info.uuid, sizeof info.uuid);
  copy_text(model.name, info.model, sizeof info.model);
  copy_text(model.marketing_name, info.name, sizeof info.name);
  copy_text(fmt::format("nvidia{}", index), info.device_file, sizeof info.device_file);
  const auto given = [](uint32_t asked, uint32_t own) {
    return (asked == UINT32_MAX ? own : asked) * kMiB;
  };
  info.total_bytes = (spec.total_mib == 0 ? model.total_mib : spec.total_mib) * kMiB;
  info.reserved_bytes = given(spec.reserved_mib, model.reserved_mib);
  info.context_overhead_bytes = given(spec.context_mib, model.context_overhead_mib);
  info.mps_server_bytes = given(spec.mps_server_mib, model.mps_server_mib);
  if (spec.vgpu_gib != 0) {
    info.kind = DeviceKind::kVgpu;
    copy_text(fmt::format("{}-{}Q", model.marketing_name, spec.vgpu_gib), info.name,
              sizeof info.name);
    info.total_bytes = spec.vgpu_gib * 1024 * kMiB;
    // In proportion: a stand-in.
    info.reserved_bytes =
        uint64_t{model.reserved_mib} * spec.vgpu_gib * 1024 / model.total_mib * kMiB;
  }
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
  info.client_slots = mps_client_slots(model.cc_major, cuda_version);
  info.bandwidth_mib_per_ms = model.bandwidth_mib_per_ms;
  info.mig_capable = model.mig_profiles[0] != nullptr && spec.vgpu_gib == 0 ? 1 : 0;
  info.mig_enabled = spec.mig.empty() ? 0 : 1;
  return info;
}

DeviceInfo make_mig_device(const GpuSpec& spec, const DeviceInfo& gpu, size_t number,
                           uint32_t index, uint64_t seed) {
  const size_t profile = spec.mig[number];
  const MigSlices slices = kMigSlices[profile];
  DeviceInfo info = gpu;
  copy_text("MIG" + device_uuid(seed, index).substr(3), info.uuid, sizeof info.uuid);
  copy_text(fmt::format("{} MIG {}", spec.model->marketing_name, spec.model->mig_profiles[profile]),
            info.name, sizeof info.name);
  info.kind = DeviceKind::kMig;
  info.mig_capable = 0;
  info.mig_enabled = 0;
  info.parent = gpu.minor;
  info.gpu_instance_id = static_cast<uint32_t>(number) + 1;
  info.compute_instance_id = 0;
  copy_text(fmt::format("nvidia{}-gi{}ci0", gpu.minor, info.gpu_instance_id), info.device_file,
            sizeof info.device_file);
  // Eighths of the memory, less what the division costs (about 3 parts in 100: a stand-in).
  info.total_bytes = gpu.total_bytes / kMiB * slices.memory / 8 * 97 / 100 * kMiB;
  info.reserved_bytes = 0;
  info.sm_count = gpu.sm_count / 8 * slices.compute;
  return info;
}

}  // namespace

std::vector<DeviceInfo> make_devices(const std::vector<GpuSpec>& gpus, uint64_t seed,
                                     int cuda_version) {
  std::vector<DeviceInfo> devices;
  for (uint32_t index = 0; index < gpus.size(); ++index) {
    devices.push_back(make_gpu(gpus[index], index, seed, cuda_version));
  }
  for (size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    for (size_t number = 0; number < gpus[gpu].mig.size(); ++number) {
      devices.push_back(make_mig_device(gpus[gpu], devices[gpu], number,
                                        static_cast<uint32_t>(devices.size()), seed));
    }
  }
  return devices;
}

}  // namespace gpusim
