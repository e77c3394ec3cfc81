// NVML: MIG devices, which are handles of their own below that of their GPU.
#include "nvml/nvml_session.h"

using gpusim::DeviceKind;
using gpusim::nvml::Lock;
using gpusim::nvml::Session;
using gpusim::nvml::usable;

namespace {

constexpr unsigned int kMostMigDevices = 7;

bool is_mig(nvmlDevice_t device) {
  return device->device.info.kind == DeviceKind::kMig;
}

}  // namespace

GPUSIM_NVML nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  Lock lock;
  const nvmlReturn_t result = usable(device, count);
  if (result != NVML_SUCCESS) return result;
  *count = device->device.info.mig_capable != 0 ? kMostMigDevices : 0;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                nvmlDevice_t* mig_device) {
  Lock lock;
  const nvmlReturn_t result = usable(device, mig_device);
  if (result != NVML_SUCCESS) return result;
  if (device->device.info.mig_enabled == 0) return NVML_ERROR_NOT_SUPPORTED;
  if (index >= kMostMigDevices) return NVML_ERROR_INVALID_ARGUMENT;
  Session& session = Session::instance();
  for (uint32_t i = session.count(); i < session.count_with_mig(); ++i) {
    const auto& info = session.handle(i)->device.info;
    if (info.parent == device->device.driver_index && info.gpu_instance_id == index + 1) {
      *mig_device = session.handle(i);
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

GPUSIM_NVML nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig_device) {
  Lock lock;
  const nvmlReturn_t result = usable(device, is_mig_device);
  if (result == NVML_SUCCESS) *is_mig_device = is_mig(device) ? 1 : 0;
  return result;
}

GPUSIM_NVML nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device,
                                                         nvmlDevice_t* device) {
  Lock lock;
  const nvmlReturn_t result = usable(mig_device, device);
  if (result != NVML_SUCCESS) return result;
  if (!is_mig(mig_device)) return NVML_ERROR_INVALID_ARGUMENT;
  Session& session = Session::instance();
  for (uint32_t i = 0; i < session.count(); ++i) {
    if (session.handle(i)->device.driver_index == mig_device->device.info.parent) {
      *device = session.handle(i);
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

GPUSIM_NVML nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int* id) {
  Lock lock;
  const nvmlReturn_t result = usable(device, id);
  if (result != NVML_SUCCESS) return result;
  if (!is_mig(device)) return NVML_ERROR_NOT_SUPPORTED;
  *id = device->device.info.gpu_instance_id;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int* id) {
  Lock lock;
  const nvmlReturn_t result = usable(device, id);
  if (result != NVML_SUCCESS) return result;
  if (!is_mig(device)) return NVML_ERROR_NOT_SUPPORTED;
  *id = device->device.info.compute_instance_id;
  return NVML_SUCCESS;
}
