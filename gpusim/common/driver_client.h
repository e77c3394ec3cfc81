// One connection to gpusimd, request by request. Not thread-safe: its owner locks.
// Never throws. Used by both injected libraries, the MPS server and the gpusim command.
#pragma once

#include <sys/types.h>

#include "common/protocol.h"

namespace gpusim {

// Value of GPUSIM_DIR, or /run/gpusim, where the CDI spec puts it in a container.
const char* driver_folder();

class DriverClient {
 public:
  DriverClient() = default;
  ~DriverClient() { disconnect(); }
  DriverClient(const DriverClient&) = delete;
  DriverClient& operator=(const DriverClient&) = delete;

  // Connects and says hello. kDisconnected when no gpusimd serves the folder.
  Status connect_to(const char* folder, Role role);
  void disconnect();

  // False in a forked child: the connection stands for the process that made it.
  bool connected() const;
  int fd() const { return fd_; }
  uint32_t device_count() const { return device_count_; }
  int32_t own_pid() const { return own_pid_; }                 // of this process where gpusimd is
  uint64_t event_sequence() const { return event_sequence_; }  // of the last event before hello

  // Fills in magic, version and sequence. kDisconnected when the driver is gone, after which the
  // connection is closed.
  Status call(Request* request, Reply* reply);
  // The halves of call(), for what is answered late.
  Status send(Request* request);
  Status receive(Reply* reply);

  // The plain calls.
  Status get_device(uint32_t device, DeviceInfo* info);
  Status get_state(uint32_t device, DeviceState* state);
  Status get_driver(DriverInfo* info);
  Status get_memory_limit(uint32_t device, const char* cgroup, MemoryLimit* limit);
  Status set_memory_limit(uint32_t device, const MemoryLimit& limit);

 private:
  int fd_ = -1;
  pid_t owner_ = 0;
  uint32_t sequence_ = 0;
  uint32_t device_count_ = 0;
  uint64_t event_sequence_ = 0;
  int32_t own_pid_ = 0;
};

Request make_request(Op op, uint32_t device = 0);

}  // namespace gpusim
