// What the console shows of a process and of a device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/protocol.h"

namespace gpusim::mps {

// The inode of the process's PID namespace, which maps a client to its container; "-" if unknown.
std::string pid_namespace(int32_t pid);
// The command line, arguments between blanks, control characters as "?"; "-" if unknown.
std::string command_of(int32_t pid);
// "00000000:31:00.0"
std::string pci_bus_id(const DeviceInfo& info);

// Those with the UUIDs, in that order; all that the driver has for none.
std::vector<DeviceInfo> ask_devices(const std::vector<std::string>& uuids);

}  // namespace gpusim::mps
