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
inline constexpr uint16_t kProtocolVersion = 3;
inline constexpr char kSocketFolder[] = "socket";
inline constexpr char kSocketName[] = "gpusimd.sock";
inline constexpr char kDevicesFolder[] = "devices";
inline constexpr char kContainerDir[] = "/run/gpusim";  // where the CDI spec mounts the folder
inline constexpr char kDirEnvironment[] = "GPUSIM_DIR";
inline constexpr size_t kUuidTextSize = 48;  // "GPU-8-4-4-4-12" is 40 and a NUL

enum class Op : uint16_t {
  // flags: Role. First message of every connection. value: last event so far, value2: the sender's
  // pid where gpusimd is.
  kHello = 1,
  kGetDevice = 2,       // device -> DeviceInfo, as it is now
  kGetState = 3,        // device -> DeviceState
  kListProcesses = 4,   // device, arg = first row -> ProcessEntry[count], total in value
  kSetComputeMode = 5,  // device, arg = mode. Needs the privileges of gpusimd itself.
  kGetDriver = 6,       // -> DriverInfo
  // arg = sequence of the last event seen, 0: from the next one on. Answered as soon as there is a
  // later event: value = its sequence, EventEntry. A connection of its own is for this: until the
  // answer it may ask nothing else.
  kWaitEvent = 7,
  kSetMemoryLimit = 8,  // device, memory_limit. Privileges as above.
  kGetMemoryLimit = 9,  // device, memory_limit.cgroup -> MemoryLimit
  kContextCreate = 10,  // device, flags: kViaMps
  kContextDestroy = 11,
  kAllocate = 12,      // device, arg = bytes -> value = handle
  kFree = 13,          // arg = handle
  kClientMemory = 14,  // device -> value = free bytes for this client, value2 = total it sees
  kCheck = 15,         // is this client still in good standing on the device (sticky errors)
  // device, arg = microseconds on a whole idle GPU -> value = modelled microseconds, which grow with
  // a thread percentage and with others at work. flags: KernelFault: what the kernel does wrong.
  // launch_percent: of the context, in hundredths, 0 = all; the process's own holds too.
  kLaunch = 16,
  kMpsAdmit = 20,      // role kMpsServer; pid, admission
  kMpsRelease = 21,    // pid
  kMpsTerminate = 22,  // pid: its contexts become inactive, its calls answer kClientTerminated
  // role kMpsServer; arg 1: in FAULT, 0: over. While in FAULT its clients get no new contexts on
  // the devices that were hit.
  kMpsFault = 23,
  // 100..199: faults on demand, with the privileges of gpusimd itself. Unknown operations answer
  // kUnsupported, so that an older daemon and a newer tool can part politely.
  kInjectFault = 100,  // device, pid (0: all on the GPU), arg = Xid, flags = CUDA error (0: by Xid)
  kInjectXid = 101,    // device, pid, arg = Xid; flags: kXidEventOnly, else what its class entails
  kLoseDevice = 102,   // device: off the bus (Xid 79)
  kRestoreDevice = 103,  // device; flags: kNewUuid
  kResetDevice = 104,    // device: kDeviceBusy while processes are on it
  kSlowDevice = 105,     // device, arg = milliseconds by which each answer is late, 0 = none
  kInjectEcc = 106,      // device, arg = count; flags: kEccUncorrected
  kSetBehaviour = 107,   // arg = Behaviour bits, flags = the ones of them to be on
};

enum class Role : uint32_t { kObserver = 0, kCuda = 1, kMpsServer = 2 };

inline constexpr uint32_t kViaMps = 1;
inline constexpr uint32_t kXidEventOnly = 1;
inline constexpr uint32_t kNewUuid = 1;
inline constexpr uint32_t kEccUncorrected = 1;

enum class KernelFault : uint32_t { kNone = 0, kIllegalAddress = 700, kLaunchFailed = 719 };

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
  kMpsServerNotReady = 12,   // CUDA error 807
  kGpuLost = 13,             // NVML error 15
  kResetRequired = 14,       // NVML error 16
  kFaulted = 15,             // sticky on the device; value = CUDA error
  kTooManyConnections = 16,  // CUDA error 809
  kNoPartition = 17,         // the device is partitioned and the client has no partition: 915
  kDisconnected = 100,       // made up by the client side: gpusimd is not there (any more)
};

enum class ComputeMode : uint32_t {  // nvmlComputeMode_t
  kDefault = 0,
  kExclusiveThread = 1,  // removed by NVIDIA, refused
  kProhibited = 2,
  kExclusiveProcess = 3,
};

enum class DeviceKind : uint32_t { kGpu = 0, kVgpu = 1, kMig = 2 };
enum class DeviceHealth : uint32_t { kGood = 0, kLost = 1, kResetRequired = 2 };

inline constexpr size_t kCgroupTextSize = 480;

// The device-memory cgroup's limits. Bytes.
struct MemoryLimit {
  uint64_t soft;          // 0: none
  uint64_t hard;          // UINT64_MAX: none
  uint64_t current_used;  // answers only
  char cgroup[kCgroupTextSize];
};

// What an MPS server says of a client that it admits.
struct MpsAdmission {
  uint64_t limits[kMaxDevices];  // pinned memory in bytes by device, 0 = none
  uint64_t partitioned_devices;  // bit per device on which a context needs an SM partition
  uint32_t partition;            // the client's SM partition, by the server's number; 0 = none
  uint32_t partition_device;
  uint32_t percent_hundredths;  // of the multiprocessors; 0 = all
  uint32_t connections;         // CUDA_DEVICE_MAX_CONNECTIONS; 0 = kDefaultConnections
};

// Each client slot of a Volta or newer GPU stands for so many hardware work queues.
inline constexpr uint32_t kDefaultConnections = 2;
inline constexpr uint32_t kMaxConnections = 32;

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
  union {
    MpsAdmission admission;
    MemoryLimit memory_limit;
    uint32_t launch_percent;
  };
};
static_assert(sizeof(Request) == 40 + sizeof(MpsAdmission));

// What is not an NVIDIA driver's property but its known gaps, each with a switch.
enum Behaviour : uint32_t {
  // A client's pinned limit that names a device that it cannot see drops all its limits.
  kCraftedLimitDropsAll = 1,
  // A process that does not come through the MPS server runs beside it in DEFAULT mode, unlimited.
  kPlainProcessBesideMps = 2,
  // The pinned limit holds for each process; off: for all processes of a cgroup together.
  kLimitPerProcess = 4,
};

struct DriverInfo {
  char driver_version[40];  // "580.95.05-gpusim"
  char nvml_version[40];    // "13.580.95.05-gpusim"
  int32_t cuda_version;     // 13000
  uint32_t behaviours;      // Behaviour bits
};

struct DeviceInfo {
  char uuid[kUuidTextSize];
  char model[16];
  char name[64];
  char device_file[24];  // in the folder `devices`
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
  DeviceKind kind;
  uint32_t mig_capable;
  uint32_t mig_enabled;          // of a GPU: it is divided into MIG devices
  uint32_t parent;               // of a MIG device: its GPU's index
  uint32_t gpu_instance_id;      // of a MIG device
  uint32_t compute_instance_id;  // of a MIG device
  uint32_t generation;           // grows when the GPU comes back as another one
  DeviceHealth health;
};

struct DeviceState {
  uint64_t used_bytes;  // without the reserved part
  uint64_t ecc_corrected;
  uint64_t ecc_uncorrected;
  ComputeMode compute_mode;
  uint32_t gpu_utilization_percent;
  uint32_t generation;
  DeviceHealth health;
};

enum class ProcessKind : uint32_t { kCompute = 0, kMpsServer = 1, kMpsClient = 2 };

struct ProcessEntry {
  int32_t pid;
  ProcessKind kind;
  uint64_t used_bytes;
  uint32_t faulted;  // CUDA error that is sticky on this device; 0: none
  uint32_t reserved;
};

inline constexpr uint32_t kProcessesPerReply = 42;

enum class EventKind : uint32_t {
  kNvml = 1,        // of interest to NVML only
  kFatalFault = 2,  // contexts on devices_hit are dead; an MPS server on them goes to FAULT
  kDeviceLost = 3,
  kDeviceRestored = 4,
};

struct EventEntry {
  uint64_t sequence;
  uint64_t type;         // NVML event bit; 0: not shown by NVML
  uint64_t data;         // Xid
  uint64_t devices_hit;  // bit per device
  uint64_t time_us;      // monotonic clock
  EventKind kind;
  uint32_t device;
  int32_t pid;  // whom the Xid names; 0: unknown
  uint32_t cuda_error;
};

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
    DriverInfo driver;
    DeviceInfo device;
    DeviceState state;
    EventEntry event;
    MemoryLimit memory_limit;
    ProcessEntry processes[kProcessesPerReply];
  };
};

}  // namespace gpusim
