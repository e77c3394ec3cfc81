// The text of `gpusim smi`: tables with the layout of nvidia-smi; what is not simulated is N/A.
#pragma once

#include <string>

#include "common/driver_client.h"

namespace gpusim {

// Of all GPUs, or of the one with the index `only` (below 0: all). kDisconnected and the like.
Status smi_table(DriverClient* client, int only, std::string* out);
// As nvidia-smi -L has it: a line for each GPU, with its UUID.
Status smi_list(DriverClient* client, std::string* out);

}  // namespace gpusim
