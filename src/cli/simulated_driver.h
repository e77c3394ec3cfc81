// Starts and ends gpusimd, the simulated driver that --simulate-gpus asks for. To the agent it is
// what a GPU machine is: three paths.
//
// gpusimd outlives us, like a kernel driver: a restart of cotenant finds it again.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/installation.h"

namespace cotenant::cli {

enum class DriverStart { kStarted, kFound };

// The folder that gpusimd owns; clients find it by GPUSIM_DIR.
std::string simulated_driver_dir(const Installation& installation);

// Starts gpusimd for `simulate_gpus`, or finds the one that runs; sets the installation's driver
// paths and GPUSIM_DIR in our own environment. Errors: kIo, kInvalidParameter (the spec, with
// gpusimd's own words); kConflict when one runs with another spec.
base::Result<DriverStart> use_simulated_driver(Installation& installation);

// Ends it. None: success.
base::Status end_simulated_driver(const Installation& installation);

}  // namespace cotenant::cli
