#include "common/visible_devices.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "common/text.h"

namespace gpusim {
namespace {

bool has_device_file(const char* folder, const DeviceInfo& info) {
  char path[4096];
  const int length =
      snprintf(path, sizeof path, "%s/%s/%s", folder, kDevicesFolder, info.device_file);
  if (length <= 0 || static_cast<size_t>(length) >= sizeof path) return false;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char content[512];
  const ssize_t size = read(fd, content, sizeof content);
  close(fd);
  if (size <= 0) return false;
  // A file of an earlier driver with other devices does not make this device visible.
  return std::string_view(content, static_cast<size_t>(size)).find(info.uuid) !=
         std::string_view::npos;
}

// Index in devices[] or -1.
int resolve(std::string_view entry, const VisibleDevice* devices, uint32_t count) {
  uint64_t ordinal = 0;
  if (parse_number(entry, &ordinal)) return ordinal < count ? static_cast<int>(ordinal) : -1;
  int found = -1;
  for (uint32_t i = 0; i < count; ++i) {
    if (!names_uuid(entry, devices[i].info.uuid)) continue;
    if (found >= 0) return -1;  // not unique
    found = static_cast<int>(i);
  }
  return found;
}

void keep_usable(VisibleDevice* devices, uint32_t* count) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < *count; ++i) {
    if (devices[i].info.mig_enabled == 0) devices[kept++] = devices[i];
  }
  *count = kept;
}

void keep_one_mig_device(VisibleDevice* devices, uint32_t* count) {
  for (uint32_t i = 0; i < *count; ++i) {
    if (devices[i].info.kind != DeviceKind::kMig) continue;
    devices[0] = devices[i];
    *count = 1;
    return;
  }
}

}  // namespace

Status list_devices_with_file(DriverClient* client, const char* folder, VisibleDevice* devices,
                              uint32_t* count) {
  *count = 0;
  for (uint32_t index = 0; index < client->device_count() && index < kMaxDevices; ++index) {
    VisibleDevice device;
    device.driver_index = index;
    const Status status = client->get_device(index, &device.info);
    if (status != Status::kOk) return status;
    if (has_device_file(folder, device.info)) devices[(*count)++] = device;
  }
  return Status::kOk;
}

void apply_cuda_visible_devices(const char* text, VisibleDevice* devices, uint32_t* count) {
  keep_usable(devices, count);
  if (text == nullptr) {
    keep_one_mig_device(devices, count);
    return;
  }
  bool taken[kMaxDevices] = {};
  uint32_t order[kMaxDevices];
  uint32_t kept = 0;
  std::string_view rest(text);
  while (!rest.empty()) {
    const int index = resolve(trim(take_field(&rest, ',')), devices, *count);
    if (index < 0) break;
    if (taken[index]) {
      kept = 0;
      break;
    }
    taken[index] = true;
    order[kept++] = static_cast<uint32_t>(index);
  }
  // In place by cycles would be clever; one copy of what is kept is plain.
  VisibleDevice* copy = new VisibleDevice[kMaxDevices];
  for (uint32_t i = 0; i < kept; ++i) copy[i] = devices[order[i]];
  for (uint32_t i = 0; i < kept; ++i) devices[i] = copy[i];
  delete[] copy;
  *count = kept;
  keep_one_mig_device(devices, count);
}

}  // namespace gpusim
