// NVML: library, driver and device lookup.
#include <cstdio>
#include <cstring>

#include "common/text.h"
#include "nvml/nvml_session.h"

using gpusim::copy_text;
using gpusim::nvml::Lock;
using gpusim::nvml::Session;

namespace {

nvmlReturn_t put_text(const char* text, char* to, unsigned int length) {
  if (to == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= strlen(text)) return NVML_ERROR_INSUFFICIENT_SIZE;
  copy_text(text, to, length);
  return NVML_SUCCESS;
}

nvmlReturn_t put_system_text(const char* text, char* to, unsigned int length) {
  return Session::instance().initialized() ? put_text(text, to, length) : NVML_ERROR_UNINITIALIZED;
}

// A GPU that is off the bus has a place in the count, but no handle.
nvmlReturn_t give(nvmlDevice_t found, nvmlDevice_t* device) {
  const nvmlReturn_t result = gpusim::nvml::usable(found, device);
  if (result == NVML_SUCCESS) *device = found;
  return result;
}

}  // namespace

GPUSIM_NVML nvmlInit_v2() {
  Lock lock;
  return Session::instance().init();
}

GPUSIM_NVML nvmlInitWithFlags(unsigned int) {
  Lock lock;
  return Session::instance().init();
}

GPUSIM_NVML nvmlShutdown() {
  Lock lock;
  return Session::instance().shutdown();
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED:
      return "NVML was not first initialized with nvmlInit()";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "A supplied argument is invalid";
    case NVML_ERROR_NOT_SUPPORTED:
      return "The requested operation is not available on target device";
    case NVML_ERROR_NO_PERMISSION:
      return "The current user does not have permission for operation";
    case NVML_ERROR_NOT_FOUND:
      return "A query to find an object was unsuccessful";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "An input argument is not large enough";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "NVIDIA driver is not loaded";
    case NVML_ERROR_TIMEOUT:
      return "User provided timeout passed";
    case NVML_ERROR_LIBRARY_NOT_FOUND:
      return "NVML Shared Library couldn't be found or loaded";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
      return "Local version of NVML doesn't implement this function";
    case NVML_ERROR_GPU_IS_LOST:
      return "The GPU has fallen off the bus or has otherwise become inaccessible";
    case NVML_ERROR_RESET_REQUIRED:
      return "The GPU requires a reset before it can be used again";
    case NVML_ERROR_OPERATING_SYSTEM:
      return "The GPU control device has been blocked by the operating system";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "RM detects a driver/library version mismatch";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
      return "The provided version is invalid/unsupported";
    case NVML_ERROR_UNKNOWN:
      break;
  }
  return "Unknown Error";
}

GPUSIM_NVML nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  Lock lock;
  return put_system_text(Session::instance().driver().driver_version, version, length);
}

GPUSIM_NVML nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  Lock lock;
  return put_system_text(Session::instance().driver().nvml_version, version, length);
}

GPUSIM_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) {
  Lock lock;
  if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = Session::instance().driver().cuda_version;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

GPUSIM_NVML nvmlDeviceGetCount_v2(unsigned int* count) {
  Lock lock;
  if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = Session::instance().count();
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  Lock lock;
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  if (device == nullptr || index >= session.count()) return NVML_ERROR_INVALID_ARGUMENT;
  return give(session.handle(index), device);
}

GPUSIM_NVML nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  Lock lock;
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < session.count_with_mig(); ++i) {
    if (strcmp(session.handle(i)->device.info.uuid, uuid) == 0) {
      return give(session.handle(i), device);
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

// "[domain:]bus:device[.function]" in hexadecimal digits, of any length and case.
GPUSIM_NVML nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  Lock lock;
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  unsigned int domain = 0;
  unsigned int bus = 0;
  unsigned int slot = 0;
  if (bus_id == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (sscanf(bus_id, "%8x:%2x:%2x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (sscanf(bus_id, "%2x:%2x", &bus, &slot) != 2) return NVML_ERROR_INVALID_ARGUMENT;
  }
  for (uint32_t i = 0; i < session.count(); ++i) {
    const auto& info = session.handle(i)->device.info;
    if (info.pci_domain == domain && info.pci_bus == bus && info.pci_device == slot) {
      return give(session.handle(i), device);
    }
  }
  return NVML_ERROR_NOT_FOUND;
}

GPUSIM_NVML nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

// The first names of these functions.
GPUSIM_NVML nvmlInit() {
  return nvmlInit_v2();
}
GPUSIM_NVML nvmlDeviceGetCount(unsigned int* count) {
  return nvmlDeviceGetCount_v2(count);
}
GPUSIM_NVML nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}
