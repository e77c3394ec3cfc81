// CUDA driver API: versions and devices.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/text.h"
#include "cuda/driver_state.h"

using gpusim::DeviceInfo;

namespace {

bool is_device(gpusim::cuda::Call& call, CUdevice device) {
  return device >= 0 && static_cast<uint32_t>(device) < call.driver().device_count();
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// CUdevice_attribute, the ones that programs ask most. Anything else answers 0 and success, which
// is what a driver says of a feature that the device does not have.
int attribute_value(const DeviceInfo& info, int attribute) {
  switch (attribute) {
    case 1:
      return 1024;  // MAX_THREADS_PER_BLOCK
    case 2:
      return 1024;  // MAX_BLOCK_DIM_X
    case 3:
      return 1024;  // MAX_BLOCK_DIM_Y
    case 4:
      return 64;  // MAX_BLOCK_DIM_Z
    case 5:
      return 0x7fffffff;  // MAX_GRID_DIM_X
    case 6:
      return 65535;  // MAX_GRID_DIM_Y
    case 7:
      return 65535;  // MAX_GRID_DIM_Z
    case 8:
      return 49152;  // MAX_SHARED_MEMORY_PER_BLOCK
    case 9:
      return 65536;  // TOTAL_CONSTANT_MEMORY
    case 10:
      return 32;  // WARP_SIZE
    case 12:
      return 65536;  // MAX_REGISTERS_PER_BLOCK
    case 15:
      return 1;  // GPU_OVERLAP
    case 31:
      return 1;  // CONCURRENT_KERNELS
    case 33:
      return static_cast<int>(info.pci_bus);  // PCI_BUS_ID
    case 34:
      return static_cast<int>(info.pci_device);  // PCI_DEVICE_ID
    case 39:
      return 2048;  // MAX_THREADS_PER_MULTIPROCESSOR
    case 40:
      return 2;  // ASYNC_ENGINE_COUNT
    case 41:
      return 1;  // UNIFIED_ADDRESSING
    case 50:
      return static_cast<int>(info.pci_domain);  // PCI_DOMAIN_ID
    case 75:
      return static_cast<int>(info.cc_major);  // COMPUTE_CAPABILITY_MAJOR
    case 76:
      return static_cast<int>(info.cc_minor);  // COMPUTE_CAPABILITY_MINOR
    case 83:
      return 1;  // MANAGED_MEMORY
    default:
      return 0;
  }
}

constexpr int kMultiprocessorsAttribute = 16;
constexpr int kComputeModeAttribute = 20;

}  // namespace

GPUSIM_CUDA cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = gpusim::cuda::driver_cuda_version();
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceGetCount(int* count) {
  GPUSIM_CALL(kInit);
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(call.driver().device_count());
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceGet(CUdevice* device, int ordinal) {
  GPUSIM_CALL(kInit);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceGetName(char* name, int length, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (name == nullptr || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  gpusim::copy_text(call.driver().device(static_cast<uint32_t>(device)).name, name,
                    static_cast<size_t>(length));
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const DeviceInfo& info = call.driver().device(static_cast<uint32_t>(device));
  *bytes = info.total_bytes - info.reserved_bytes;
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (value == nullptr || attribute <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const auto ordinal = static_cast<uint32_t>(device);
  if (attribute == kComputeModeAttribute) return call.driver().compute_mode(ordinal, value);
  if (attribute == kMultiprocessorsAttribute) {
    *value =
        static_cast<int>(call.driver().multiprocessors(ordinal, gpusim::cuda::current_context()));
    return CUDA_SUCCESS;
  }
  *value = attribute_value(call.driver().device(ordinal), attribute);
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  memset(uuid, 0, sizeof *uuid);
  size_t digits = 0;
  const char* at = call.driver().device(static_cast<uint32_t>(device)).uuid + strlen("GPU-");
  for (; *at != '\0' && digits < 32; ++at) {
    const int value = hex_digit(*at);
    if (value < 0) continue;
    uuid->bytes[digits / 2] =
        static_cast<unsigned char>(uuid->bytes[digits / 2] | value << (digits % 2 == 0 ? 4 : 0));
    ++digits;
  }
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

GPUSIM_CUDA cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (text == nullptr || length < 13) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const DeviceInfo& info = call.driver().device(static_cast<uint32_t>(device));
  snprintf(text, static_cast<size_t>(length), "%04x:%02x:%02x.0", info.pci_domain, info.pci_bus,
           info.pci_device);
  return CUDA_SUCCESS;
}

GPUSIM_CUDA cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  GPUSIM_CALL(kInit);
  if (device == nullptr || text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // [domain:]bus:device[.function], hexadecimal.
  const char* last = strrchr(text, ':');
  if (last == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const unsigned long slot = strtoul(last + 1, nullptr, 16);
  const char* first = strchr(text, ':');
  const unsigned long domain = first == last ? 0 : strtoul(text, nullptr, 16);
  const unsigned long bus = strtoul(first == last ? text : first + 1, nullptr, 16);
  for (uint32_t i = 0; i < call.driver().device_count(); ++i) {
    const DeviceInfo& info = call.driver().device(i);
    if (info.pci_domain == domain && info.pci_bus == bus && info.pci_device == slot) {
      *device = static_cast<CUdevice>(i);
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

GPUSIM_CUDA cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  GPUSIM_CALL(kInit);
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(call, device)) return CUDA_ERROR_INVALID_DEVICE;
  const DeviceInfo& info = call.driver().device(static_cast<uint32_t>(device));
  *major = static_cast<int>(info.cc_major);
  *minor = static_cast<int>(info.cc_minor);
  return CUDA_SUCCESS;
}
