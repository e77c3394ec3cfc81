#include "common/driver_versions.h"

#include <cstdio>
#include <cstring>

#include "common/text.h"

namespace gpusim {
namespace {

// CUDA versions as in NVIDIA's table of driver and toolkit releases. What depends on them here:
// no pinned limits before CUDA 11.5, 48 or 60 MPS clients, MPS v3 and the device-memory cgroup from
// 615 (CUDA 13.4) on, shared memory by name in 470 and 535.
constexpr DriverVersion kVersions[] = {
    {470, "470.256.02", 11040}, {535, "535.261.03", 12020}, {550, "550.163.01", 12040},
    {580, "580.95.05", 13000},  {590, "590.44.01", 13010},  {595, "595.91.07", 13020},
    {615, "615.71.09", 13040},
};

}  // namespace

const DriverVersion* driver_versions(size_t* count) {
  *count = sizeof kVersions / sizeof kVersions[0];
  return kVersions;
}

uint32_t driver_major(const char* version) {
  uint32_t major = 0;
  for (; *version >= '0' && *version <= '9' && major < 100000; ++version) {
    major = major * 10 + static_cast<uint32_t>(*version - '0');
  }
  return major;
}

bool find_driver_version(std::string_view text, DriverInfo* info) {
  std::string_view rest = text;
  uint64_t part = 0;
  uint64_t major = 0;
  int parts = 0;
  while (!rest.empty()) {
    if (!parse_number(take_field(&rest, '.'), &part)) return false;
    if (parts++ == 0) major = part;
  }
  if (parts == 0 || parts > 3 || text.ends_with('.') || text.size() > 20) return false;
  const DriverVersion* found = nullptr;
  for (const DriverVersion& version : kVersions) {
    if (version.major <= major) found = &version;
  }
  if (found == nullptr || major > 999) return false;
  if (parts == 1 && found->major != major) return false;  // no release of that number is known
  const std::string_view full = parts == 1 ? std::string_view(found->text) : text;
  memset(info, 0, sizeof *info);
  snprintf(info->driver_version, sizeof info->driver_version, "%.*s-gpusim",
           static_cast<int>(full.size()), full.data());
  snprintf(info->nvml_version, sizeof info->nvml_version, "%d.%.*s-gpusim", found->cuda / 1000,
           static_cast<int>(full.size()), full.data());
  info->cuda_version = found->cuda;
  info->behaviours = kPlainProcessBesideMps | kLimitPerProcess;
  // Seen on 615.71.09; whether older ones do it is not known, so there it is a switch only.
  if (found->major >= 615) info->behaviours |= kCraftedLimitDropsAll;
  return true;
}

}  // namespace gpusim
