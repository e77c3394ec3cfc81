// The driver's events (Xid, faults, a GPU that is lost or comes back), on a connection of their own.
// Not thread-safe. Never throws. For NVML's event sets and for the MPS server.
#pragma once

#include "common/driver_client.h"

namespace gpusim {

class EventStream {
 public:
  // Events from now on. kDisconnected when no gpusimd serves the folder.
  Status open(const char* folder, Role role);

  // Readable when next() has something to say.
  int fd() const { return client_.fd(); }

  // The next event, for which it waits at most timeout_ms (0: not at all; below 0: as long as it
  // takes). kNotFound: none in that time. kDisconnected: the driver is gone; open it anew.
  Status next(EventEntry* event, int timeout_ms);

 private:
  DriverClient client_;
  uint64_t last_ = 0;
  bool waiting_ = false;
};

}  // namespace gpusim
