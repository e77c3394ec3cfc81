// The text of `gpusim smi`: a table in the manner of nvidia-smi.
#pragma once

#include <string>

#include "common/driver_client.h"

namespace gpusim {

// Of all GPUs, or of the one with the index `only` (below 0: all). kDisconnected and the like.
Status smi_table(DriverClient* client, int only, std::string* out);

}  // namespace gpusim
