// `gpusim smi`: a table in the manner of nvidia-smi.
#pragma once

#include <string>

#include "common/driver_client.h"

namespace gpusim {

// The table, or kDisconnected and the like.
Status smi_table(DriverClient* client, std::string* out);

}  // namespace gpusim
