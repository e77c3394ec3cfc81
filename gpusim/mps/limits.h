// The pinned-memory limits that a daemon or server keeps, by device key as it was given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/visible_devices.h"

namespace gpusim::mps {

class LimitTable {
 public:
  struct Entry {
    std::string key;  // ordinal or UUID; never translated from one to the other
    uint64_t bytes;
  };

  // A key that is set already, or room for another; and not too long.
  bool has_room_for(std::string_view key) const;
  // The key is not checked against any device: a bad one is ignored when a server starts.
  void set(std::string_view key, uint64_t bytes);
  std::optional<uint64_t> get(std::string_view key) const;
  const std::vector<Entry>& entries() const { return entries_; }  // oldest setting first

  void drop_uuids();
  // "0=1G,GPU-...=2G", the daemon's own CUDA_MPS_PINNED_DEVICE_MEM_LIMIT.
  void set_from_environment(const char* text);

  // Bytes by driver index. UUID and ordinal keys may both name a device: the one set last wins.
  void resolve(const std::vector<VisibleDevice>& devices, uint64_t* limits) const;

 private:
  std::vector<Entry> entries_;
};

// How the console shows a limit, which is lossy: 1 GiB and more as whole GiB, rounded down (seen on
// 595.91.07: 1044M reads back as 1G). The exact value is in server.log only.
std::string show_limit(uint64_t bytes);

// "25.0"
std::string show_percent(uint32_t hundredths);

}  // namespace gpusim::mps
