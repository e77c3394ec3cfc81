// What we use of NVML's binary interface, declared by ourselves: the library is found at run time
// and NVIDIA's header is neither needed nor shipped. Names and layouts are those of nvml.h (API 13,
// x86-64; facts checked by compiling that header); a _v2 in a name is part of the exported symbol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cotenant::adapters::nvml {

struct DeviceHandle;  // opaque
using Device = DeviceHandle*;

// nvmlReturn_t. A newer driver may return values that are not here.
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

inline constexpr unsigned kDriverVersionBytes = 80;
inline constexpr unsigned kNameBytes = 96;
inline constexpr unsigned kUuidBytes = 96;

// nvmlGpuVirtualizationMode_t
inline constexpr unsigned kVirtualizationModeVgpu = 2;
// nvmlDeviceGetMigMode
inline constexpr unsigned kMigModeEnabled = 1;

// NVML_STRUCT_VERSION: the size of the struct and, in the top byte, its version. A wrong word
// gives 25.
constexpr unsigned struct_version(std::size_t size, unsigned version) {
  return static_cast<unsigned>(size) | version << 24;
}

// nvmlMemory_v2_t; bytes. `used` does not count what the driver has reserved (v1's does).
struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(MemoryV2) == 40);
static_assert(offsetof(MemoryV2, total) == 8);
static_assert(offsetof(MemoryV2, reserved) == 16);
static_assert(offsetof(MemoryV2, free) == 24);
static_assert(offsetof(MemoryV2, used) == 32);
inline constexpr unsigned kMemoryV2Version = struct_version(sizeof(MemoryV2), 2);
static_assert(kMemoryV2Version == 0x02000028);

// nvmlPciInfo_t
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);
static_assert(offsetof(PciInfo, domain) == 16);
static_assert(offsetof(PciInfo, pci_device_id) == 28);
static_assert(offsetof(PciInfo, bus_id) == 36);

// The functions' types, named as the symbols without "nvml".
using Init_v2 = Return();
using Shutdown = Return();
using SystemGetDriverVersion = Return(char*, unsigned);
using SystemGetCudaDriverVersion_v2 = Return(int*);
using DeviceGetCount_v2 = Return(unsigned*);
using DeviceGetHandleByIndex_v2 = Return(unsigned, Device*);
using DeviceGetName = Return(Device, char*, unsigned);
using DeviceGetUUID = Return(Device, char*, unsigned);
using DeviceGetPciInfo_v3 = Return(Device, PciInfo*);
using DeviceGetMemoryInfo_v2 = Return(Device, MemoryV2*);
using DeviceGetCudaComputeCapability = Return(Device, int*, int*);
using DeviceGetMigMode = Return(Device, unsigned*, unsigned*);
using DeviceGetVirtualizationMode = Return(Device, unsigned*);

}  // namespace cotenant::adapters::nvml
