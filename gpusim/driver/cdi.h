// The CDI spec of the simulated devices: what nvidia-ctk cdi generate writes for real ones, but
// without hooks, so that an engine's client can also resolve it by itself into plain mounts.
#pragma once

#include <string>
#include <vector>

#include "common/protocol.h"

namespace gpusim {

// `folder` is gpusimd's --dir (absolute), `library_folder` where the two libraries lie.
std::string cdi_spec(const std::vector<DeviceInfo>& devices, const std::string& folder,
                     const std::string& library_folder);

// As `nvidia-ctk cdi generate` writes it: versioned libraries, which only a hook that runs ldconfig
// makes findable. The hook is the program gpusim in `library_folder`.
std::string cdi_spec_like_nvidia_ctk(const std::vector<DeviceInfo>& devices,
                                     const std::string& folder, const std::string& library_folder,
                                     const DriverInfo& driver);

}  // namespace gpusim
