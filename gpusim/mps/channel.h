// Between the control daemon and its server: a socket pair, one fixed message each way. The server
// inherits its end as descriptor 3.
#pragma once

#include <cstdint>

#include "mps/mps_protocol.h"

namespace gpusim::mps {

inline constexpr int kChannelFd = 3;
inline constexpr uint32_t kMaxLimitKeys = 128;
inline constexpr size_t kLimitKeySize = 64;

enum class ChannelKind : uint32_t {
  // daemon to server
  kConfig,  // limits, hundredths, priority, uid, multiuser: the first message
  kClient,  // pid, hello, limits and hundredths for it, partition, and its connection (SCM_RIGHTS)
  kDefaults,   // limits, hundredths, priority: from now on
  kTerminate,  // pid
  kShutdown,
  // server to daemon
  kReady,           // uuids[count]
  kClientAdded,     // pid, shown_pid, devices, space, partition
  kClientRejected,  // pid
  kClientGone,      // pid
  kTerminated,      // pid, result (CUresult)
  kFault,           // a fatal GPU error: no more clients
  kRecovered,       // all that were affected have exited
};

struct LimitEntry {
  char key[kLimitKeySize];
  uint64_t bytes;
};

struct ChannelMessage {
  ChannelKind kind;
  int32_t pid;
  uint32_t uid;
  int32_t result;
  uint32_t hundredths;
  uint32_t priority;
  uint32_t percentage_rules;  // of kClient: the percentage holds whatever the client's own says
  uint32_t count;
  uint64_t devices;
  uint32_t multiuser;
  int32_t shown_pid;  // where the daemon is; pid is where gpusimd is
  // Bits by the server's ordinals: where contexts need an SM partition. Which one the client has:
  // its number (0: none), device, and "GPU-.../id", there and back.
  uint64_t partitioned_devices;
  uint32_t partition_number;
  uint32_t partition_ordinal;
  char partition[kPartitionTextSize];
  char space[72];  // v3: the namespace, there and back
  ClientHello hello;
  LimitEntry limits[kMaxLimitKeys];
  char uuids[kMaxDevices][kUuidTextSize];
};

}  // namespace gpusim::mps
