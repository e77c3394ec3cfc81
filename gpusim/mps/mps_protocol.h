// The language on the MPS sockets. Clients speak on `control`: one hello, one answer, with which
// comes a connection to the server (SCM_RIGHTS), which stays open as long as the client lives. A client that ends in good order says
// kGoodbye first. (NVIDIA's is not public; only what can be seen from outside is imitated:
// SOCK_SEQPACKET, identification by peer credentials, the daemon handing the connection over to the
// server.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/protocol.h"

namespace gpusim::mps {

inline constexpr uint32_t kMpsMagic = 0x4d505332;  // "MPS2"
inline constexpr char kControlSocket[] = "control";
inline constexpr char kPrivilegedSocket[] = "control_privileged";
inline constexpr char kLockFile[] = "control_lock";
inline constexpr char kLogFifo[] = "log";
inline constexpr char kPidFile[] = "nvidia-cuda-mps-control.pid";
inline constexpr char kServerProgram[] = "nvidia-cuda-mps-server";
inline constexpr char kDefaultPipeDirectory[] = "/tmp/nvidia-mps";
inline constexpr char kDefaultV3PipeDirectory[] = "/run/nvidia-mps";  // v3, root
inline constexpr char kDefaultLogDirectory[] = "/var/log/nvidia-mps";

// CUresult values that the MPS side answers with.
inline constexpr int32_t kMpsOk = 0;
inline constexpr int32_t kMpsNotPermitted = 800;  // another user's daemon
inline constexpr int32_t kMpsConnectionFailed = 805;
inline constexpr int32_t kMpsServerNotReady = 807;  // while the server is in FAULT
inline constexpr int32_t kMpsMaxClientsReached = 808;

inline constexpr size_t kMaxEnvironmentText = 1024;
inline constexpr size_t kPartitionTextSize = 104;  // a UUID of 40, "/" and an id

// What the client brings. The texts are resolved by the server, because ordinals count in the list
// of devices that the server shows; an unset variable has its flag 0.
struct ClientHello {
  uint32_t magic;
  uint32_t percent_hundredths;  // of CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; 0 = none
  uint64_t devices;             // bit per driver index: those with a device file
  uint32_t has_visible_devices;
  uint32_t connections;  // CUDA_DEVICE_MAX_CONNECTIONS; 0 = not set
  int32_t driver_pid;    // the client's pid where gpusimd is
  uint32_t reserved;
  char visible_devices[kMaxEnvironmentText];  // CUDA_VISIBLE_DEVICES
  char pinned_limit[kMaxEnvironmentText];     // CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; empty = none
  char sm_partition[kPartitionTextSize];      // CUDA_MPS_SM_PARTITION; empty = none
};

inline constexpr char kGoodbye = 'B';

struct ClientWelcome {
  uint32_t magic;
  int32_t result;  // CUresult
  int32_t server_pid;
  uint32_t percent_hundredths;  // in force: the lower of the server's and the client's
  uint32_t device_count;
  uint8_t devices[kMaxDevices];  // driver indexes in the client's order
  // Named shared memory that client and server must both see in /dev/shm; empty: anonymous.
  char shared_memory[64];
};

}  // namespace gpusim::mps
