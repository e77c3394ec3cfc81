// What depends on the driver version, in one table. Where the public texts do not name the version
// at which something changed, the boundary is ours and says so.
#pragma once

#include <string>

#include "common/driver_client.h"
#include "mps/settings.h"

namespace gpusim::mps {

struct DriverTraits {
  int major = 580;
  int cuda_version = 13000;
  bool has_pinned_limits = true;  // CUDA 11.5; driver 470 does not know the commands
  bool named_memory = false;      // 470 and 535 use objects in /dev/shm, the 580 series none
  bool old_wording = false;       // ours: up to 535
  bool has_terminate = true;      // 810 since CUDA 11.8
  bool has_partitions = false;    // -S, sm_partition, lspart: CUDA 13.1
  bool has_v3 = false;            // -p 3: driver 615, CUDA 13.4
};

// From "580.95.05" and 13000, with the settings that overrule it.
DriverTraits driver_traits(int major, int cuda_version, const Settings& settings);

// The driver that serves GPUSIM_DIR; without one, the version that gpusim is built as.
DriverTraits ask_driver_traits(const Settings& settings);

}  // namespace gpusim::mps
