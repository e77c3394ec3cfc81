// The part of NVML's binary interface that gpusim offers, x86-64. Written from the layouts that
// NVIDIA publishes for nvml.h (API 13); the assertions pin them. No NVIDIA header is used.
#pragma once

#include <cstddef>
#include <cstdint>

#define GPUSIM_NVML extern "C" __attribute__((visibility("default"))) nvmlReturn_t

enum nvmlReturn_t : int {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_UNKNOWN = 999,
};

struct nvmlDevice_st;
using nvmlDevice_t = nvmlDevice_st*;

struct nvmlMemory_t {
  unsigned long long total, free, used;  // used includes the reserved part
};
static_assert(sizeof(nvmlMemory_t) == 24 && offsetof(nvmlMemory_t, free) == 8 &&
              offsetof(nvmlMemory_t, used) == 16);

struct nvmlMemory_v2_t {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
static_assert(sizeof(nvmlMemory_v2_t) == 40 && offsetof(nvmlMemory_v2_t, total) == 8 &&
              offsetof(nvmlMemory_v2_t, reserved) == 16 && offsetof(nvmlMemory_v2_t, free) == 24 &&
              offsetof(nvmlMemory_v2_t, used) == 32);
inline constexpr unsigned int kMemoryV2Version = sizeof(nvmlMemory_v2_t) | 2u << 24;
static_assert(kMemoryV2Version == 0x02000028);

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};
static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, domain) == 16 &&
              offsetof(nvmlPciInfo_t, pciDeviceId) == 28 &&
              offsetof(nvmlPciInfo_t, pciSubSystemId) == 32 &&
              offsetof(nvmlPciInfo_t, busId) == 36);

struct nvmlProcessInfo_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
};
static_assert(sizeof(nvmlProcessInfo_t) == 24 && offsetof(nvmlProcessInfo_t, usedGpuMemory) == 8 &&
              offsetof(nvmlProcessInfo_t, gpuInstanceId) == 16 &&
              offsetof(nvmlProcessInfo_t, computeInstanceId) == 20);

struct nvmlUtilization_t {
  unsigned int gpu, memory;
};
static_assert(sizeof(nvmlUtilization_t) == 8);
