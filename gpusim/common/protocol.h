// The language between gpusimd ("the kernel driver") and its clients: one SOCK_SEQPACKET message of
// fixed size each way. It plays the part of the ioctl interface of /dev/nvidia*, so both ends
// belong to one release: another version is refused at hello.
//
// Every message that is not exactly a Request with the right magic ends the connection.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/models.h"

namespace gpusim {

inline constexpr uint32_t kProtocolMagic = 0x47505553;  // "GPUS"
inline constexpr uint16_t kProtocolVersion = 1;
inline constexpr char kSocketFolder[] = "socket";
inline constexpr char kSocketName[] = "gpusimd.sock";
inline constexpr char kDevicesFolder[] = "devices";
inline constexpr char kContainerDir[] = "/run/gpusim";  // where the CDI spec mounts the folder
inline constexpr char kDirEnvironment[] = "GPUSIM_DIR";
inline constexpr size_t kUuidTextSize = 48;  // "GPU-8-4-4-4-12" is 40 and a NUL

enum class Op : uint16_t {
  kHello = 1,           // flags: Role. First message of every connection.
  kGetDevice = 2,       // device -> DeviceInfo
  kGetState = 3,        // device -> DeviceState
  kListProcesses = 4,   // device, arg = first row -> ProcessEntry[count], total in value
  kSetComputeMode = 5,  // device, arg = mode. Needs the privileges of gpusimd itself.
  kContextCreate = 10,  // device, flags: kViaMps
  kContextDestroy = 11,
  kAllocate = 12,      // device, arg = bytes -> value = handle
  kFree = 13,          // arg = handle
  kClientMemory = 14,  // device -> value = free bytes for this client, value2 = the whole card's
  kCheck = 15,         // is this client still in good standing (sticky errors)
  kMpsAdmit = 20,      // role kMpsServer; pid, limits[]: bytes per device, 0 = none
  kMpsRelease = 21,    // pid
  kMpsTerminate = 22,  // pid: its contexts become inactive, its calls answer kClientTerminated
  // 100..199 are kept for fault injection. Unknown operations answer kUnsupported, so that an older
  // daemon and a newer tool can part politely.
};

enum class Role : uint32_t { kObserver = 0, kCuda = 1, kMpsServer = 2 };

inline constexpr uint32_t kViaMps = 1;

enum class Status : int32_t {
  kOk = 0,
  kBadRequest = 1,
  kUnsupported = 2,
  kNoSuchDevice = 3,
  kNotPermitted = 4,
  kNotFound = 5,
  kOutOfMemory = 6,
  kDeviceBusy = 7,         // compute mode forbids it: CUDA error 46
  kTooManyClients = 8,     // CUDA error 808
  kMpsServerGone = 9,      // CUDA error 806
  kClientTerminated = 10,  // CUDA error 810
  kTooManyAllocations = 11,
  kDisconnected = 100,  // made up by the client side: gpusimd is not there (any more)
};

enum class ComputeMode : uint32_t {  // nvmlComputeMode_t
  kDefault = 0,
  kExclusiveThread = 1,  // removed by NVIDIA, refused
  kProhibited = 2,
  kExclusiveProcess = 3,
};

struct Request {
  uint32_t magic;
  uint16_t version;
  Op op;
  uint32_t sequence;
  uint32_t device;
  uint32_t flags;
  int32_t pid;
  uint64_t arg;
  uint64_t work_us;  // modelled device time since the last request, for the utilization
  uint64_t limits[kMaxDevices];
};
static_assert(sizeof(Request) == 40 + 8 * kMaxDevices);

struct DeviceInfo {
  char uuid[kUuidTextSize];
  char model[16];
  char name[64];
  uint64_t total_bytes;
  uint64_t reserved_bytes;
  uint64_t context_overhead_bytes;
  uint64_t mps_server_bytes;
  uint32_t minor;
  uint32_t cc_major;
  uint32_t cc_minor;
  uint32_t nvml_architecture;
  uint32_t sm_count;
  uint32_t pci_domain;
  uint32_t pci_bus;
  uint32_t pci_device;
  uint32_t pci_device_id;
  uint32_t pci_subsystem_id;
  uint32_t client_slots;
  uint32_t bandwidth_mib_per_ms;
};

struct DeviceState {
  uint64_t used_bytes;  // without the reserved part
  ComputeMode compute_mode;
  uint32_t gpu_utilization_percent;
};

enum class ProcessKind : uint32_t { kCompute = 0, kMpsServer = 1, kMpsClient = 2 };

struct ProcessEntry {
  int32_t pid;
  ProcessKind kind;
  uint64_t used_bytes;
};

inline constexpr uint32_t kProcessesPerReply = 64;

struct Reply {
  uint32_t magic;
  uint16_t version;
  Op op;
  uint32_t sequence;
  Status status;
  uint32_t count;
  uint32_t device_count;
  uint64_t value;
  uint64_t value2;
  union {
    DeviceInfo device;
    DeviceState state;
    ProcessEntry processes[kProcessesPerReply];
  };
};

}  // namespace gpusim
