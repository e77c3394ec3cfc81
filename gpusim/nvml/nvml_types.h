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

struct nvmlProcessInfo_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
};
static_assert(sizeof(nvmlProcessInfo_v1_t) == 16 &&
              offsetof(nvmlProcessInfo_v1_t, usedGpuMemory) == 8);

struct nvmlProcessDetail_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId, computeInstanceId;
  unsigned long long usedGpuCcProtectedMemory;
};
static_assert(sizeof(nvmlProcessDetail_v1_t) == 32 &&
              offsetof(nvmlProcessDetail_v1_t, usedGpuMemory) == 8 &&
              offsetof(nvmlProcessDetail_v1_t, gpuInstanceId) == 16 &&
              offsetof(nvmlProcessDetail_v1_t, usedGpuCcProtectedMemory) == 24);

struct nvmlProcessDetailList_v1_t {
  unsigned int version, mode, numProcArrayEntries;
  nvmlProcessDetail_v1_t* procArray;
};
static_assert(sizeof(nvmlProcessDetailList_v1_t) == 24 &&
              offsetof(nvmlProcessDetailList_v1_t, mode) == 4 &&
              offsetof(nvmlProcessDetailList_v1_t, numProcArrayEntries) == 8 &&
              offsetof(nvmlProcessDetailList_v1_t, procArray) == 16);
inline constexpr unsigned int kProcessDetailListV1Version =
    sizeof(nvmlProcessDetailList_v1_t) | 1u << 24;
inline constexpr unsigned int kProcessModeCompute = 0;
inline constexpr unsigned int kProcessModeGraphics = 1;
inline constexpr unsigned int kProcessModeMps = 2;

struct nvmlEventSet_st;
using nvmlEventSet_t = nvmlEventSet_st*;

struct nvmlEventData_t {
  nvmlDevice_t device;
  unsigned long long eventType, eventData;  // eventData: the Xid
  unsigned int gpuInstanceId, computeInstanceId;
};
static_assert(sizeof(nvmlEventData_t) == 32 && offsetof(nvmlEventData_t, eventType) == 8 &&
              offsetof(nvmlEventData_t, eventData) == 16 &&
              offsetof(nvmlEventData_t, gpuInstanceId) == 24 &&
              offsetof(nvmlEventData_t, computeInstanceId) == 28);

inline constexpr unsigned long long kEventSingleBitEcc = 0x1;
inline constexpr unsigned long long kEventDoubleBitEcc = 0x2;
inline constexpr unsigned long long kEventXidCritical = 0x8;
inline constexpr unsigned long long kEventGpuUnavailable = 0x4000;
inline constexpr unsigned long long kEventGpuRecoveryAction = 0x8000;

union nvmlValue_t {
  double dVal;
  int siVal;
  unsigned int uiVal;
  unsigned long long ullVal;
};
struct nvmlFieldValue_t {
  unsigned int fieldId, scopeId;
  long long timestamp, latencyUsec;
  unsigned int valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};
static_assert(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, timestamp) == 8 &&
              offsetof(nvmlFieldValue_t, valueType) == 24 &&
              offsetof(nvmlFieldValue_t, nvmlReturn) == 28 &&
              offsetof(nvmlFieldValue_t, value) == 32);
inline constexpr unsigned int kFieldRecoveryAction = 230;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
inline constexpr unsigned int kValueTypeUnsignedInt = 1;

// nameSpace: full path of the cgroup; bytes. Clear: soft 0, hard UINT64_MAX.
struct nvmlSetMemoryLimits_v1_t {
  const char* nameSpace;
  unsigned long long softLimit, hardLimit;
};
static_assert(sizeof(nvmlSetMemoryLimits_v1_t) == 24 &&
              offsetof(nvmlSetMemoryLimits_v1_t, softLimit) == 8 &&
              offsetof(nvmlSetMemoryLimits_v1_t, hardLimit) == 16);
struct nvmlGetMemoryLimits_v1_t {
  const char* nameSpace;
  unsigned long long softLimit, hardLimit, currentUsed;
};
static_assert(sizeof(nvmlGetMemoryLimits_v1_t) == 32 &&
              offsetof(nvmlGetMemoryLimits_v1_t, currentUsed) == 24);

struct nvmlUtilization_t {
  unsigned int gpu, memory;
};
static_assert(sizeof(nvmlUtilization_t) == 8);
