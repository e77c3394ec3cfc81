// Which of the driver's devices a process may use.
//
// First the device files: like /dev/nvidia<N>, DIR/devices/nvidia<N> makes a device exist for a
// process, and a container has only those that its CDI devices mounted. Then, for CUDA programs and
// the MPS server, CUDA_VISIBLE_DEVICES, which restricts and renumbers.
#pragma once

#include "common/driver_client.h"

namespace gpusim {

struct VisibleDevice {
  uint32_t driver_index;  // what requests name
  DeviceInfo info;
};

// Devices whose file is there, in the order of their minor numbers. At most kMaxDevices.
Status list_devices_with_file(DriverClient* client, const char* folder, VisibleDevice* devices,
                              uint32_t* count);

// Applies CUDA_VISIBLE_DEVICES' text in place: ordinals or UUIDs (a unique prefix will do); the
// first entry that names nothing ends the list; a device named twice makes it empty (CUDA's rules).
// nullptr: no such variable. In any case a GPU that is divided gives way to its MIG devices, of which
// a process can use one only: the first.
void apply_cuda_visible_devices(const char* text, VisibleDevice* devices, uint32_t* count);

}  // namespace gpusim
