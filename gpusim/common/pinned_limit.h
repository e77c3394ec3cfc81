// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: "0=1G,1=512MB" or "GPU-<uuid>=2G".
#pragma once

#include "common/visible_devices.h"

namespace gpusim {

// Sets limits[driver index] (bytes) for each device named. Ordinals are those of `devices`, the
// process's own view. What is malformed, or names a device that is not there, is passed over
// without a word, as NVIDIA's does: no limit. Of two entries for one device the later holds.
void apply_pinned_limits(const char* text, const VisibleDevice* devices, uint32_t count,
                         uint64_t* limits);

// Does the text have an entry for a device that is not in `devices`? Observed on 615.71.09: such an
// entry makes the driver drop every limit of that client.
bool names_unknown_device(const char* text, const VisibleDevice* devices, uint32_t count);

// CUDA_MPS_ACTIVE_THREAD_PERCENTAGE in hundredths, above 0 and at most 10000; 0 when malformed.
uint32_t parse_thread_percentage(const char* text);

}  // namespace gpusim
