// NVML: library, driver and device lookup.
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
  Lock lock;
  if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
  return put_text(text, to, length);
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
  return put_system_text(gpusim::kDriverVersion, version, length);
}

GPUSIM_NVML nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  return put_system_text(gpusim::kNvmlVersion, version, length);
}

GPUSIM_NVML nvmlSystemGetCudaDriverVersion_v2(int* version) {
  Lock lock;
  if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
  if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *version = gpusim::kCudaVersion;
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
  *device = session.handle(index);
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  Lock lock;
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  if (uuid == nullptr || device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < session.count(); ++i) {
    if (strcmp(session.handle(i)->device.info.uuid, uuid) == 0) {
      *device = session.handle(i);
      return NVML_SUCCESS;
    }
  }
  return NVML_ERROR_NOT_FOUND;
}
