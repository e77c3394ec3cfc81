// NVML: questions about one device.
#include <cstdio>
#include <cstring>

#include "common/text.h"
#include "nvml/nvml_session.h"

using gpusim::ComputeMode;
using gpusim::DeviceInfo;
using gpusim::DeviceState;
using gpusim::make_request;
using gpusim::Op;
using gpusim::ProcessEntry;
using gpusim::ProcessKind;
using gpusim::Reply;
using gpusim::Request;
using gpusim::nvml::Lock;
using gpusim::nvml::Session;

namespace {

constexpr unsigned int kNoInstance = 0xFFFFFFFF;  // gpuInstanceId without MIG

nvmlReturn_t usable(nvmlDevice_t device, const void* out) {
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  return session.owns(device) && out != nullptr ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t get_state(nvmlDevice_t device, DeviceState* state) {
  Request request = make_request(Op::kGetState, device->device.driver_index);
  Reply reply;
  const nvmlReturn_t result = Session::instance().call(&request, &reply);
  if (result == NVML_SUCCESS) *state = reply.state;
  return result;
}

// One fixed fact of the device.
template <typename Value, typename Get>
nvmlReturn_t get_fact(nvmlDevice_t device, Value* out, Get get) {
  Lock lock;
  const nvmlReturn_t result = usable(device, out);
  if (result == NVML_SUCCESS) *out = static_cast<Value>(get(device->device.info));
  return result;
}

nvmlReturn_t get_text(nvmlDevice_t device, char* to, unsigned int length,
                      const char* (*get)(const DeviceInfo&)) {
  Lock lock;
  const nvmlReturn_t result = usable(device, to);
  if (result != NVML_SUCCESS) return result;
  const char* text = get(device->device.info);
  if (length <= strlen(text)) return NVML_ERROR_INSUFFICIENT_SIZE;
  gpusim::copy_text(text, to, length);
  return NVML_SUCCESS;
}

// NVML's protocol: too little room (0 included) gives 7 and the count that is needed. Compute and
// MPS lists: the server shows as an ordinary compute process, its clients only in the MPS list.
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned int* count, nvmlProcessInfo_t* infos,
                            bool mps_clients) {
  Lock lock;
  const nvmlReturn_t result = usable(device, count);
  if (result != NVML_SUCCESS) return result;
  const unsigned int room = infos == nullptr ? 0 : *count;
  unsigned int found = 0;
  uint64_t row = 0;
  uint64_t total = 0;
  do {
    Request request = make_request(Op::kListProcesses, device->device.driver_index);
    request.arg = row;
    Reply reply;
    const nvmlReturn_t called = Session::instance().call(&request, &reply);
    if (called != NVML_SUCCESS) return called;
    total = reply.value;
    if (reply.count == 0) break;
    for (uint32_t i = 0; i < reply.count; ++i) {
      const ProcessEntry& process = reply.processes[i];
      if ((process.kind == ProcessKind::kMpsClient) != mps_clients) continue;
      if (found < room) {
        infos[found] = {static_cast<unsigned int>(process.pid), process.used_bytes, kNoInstance,
                        kNoInstance};
      }
      ++found;
    }
    row += reply.count;
  } while (row < total);
  *count = found;
  return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

}  // namespace

GPUSIM_NVML nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length) {
  return get_text(device, name, length, [](const DeviceInfo& i) -> const char* { return i.name; });
}

GPUSIM_NVML nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length) {
  return get_text(device, uuid, length, [](const DeviceInfo& i) -> const char* { return i.uuid; });
}

GPUSIM_NVML nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  return get_fact(device, index,
                  [&](const DeviceInfo&) { return Session::instance().index_of(device); });
}

GPUSIM_NVML nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  return get_fact(device, minor, [](const DeviceInfo& info) { return info.minor; });
}

GPUSIM_NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  Lock lock;
  const nvmlReturn_t result = usable(device, pci);
  if (result != NVML_SUCCESS) return result;
  const DeviceInfo& info = device->device.info;
  memset(pci, 0, sizeof *pci);
  pci->domain = info.pci_domain;
  pci->bus = info.pci_bus;
  pci->device = info.pci_device;
  pci->pciDeviceId = info.pci_device_id;
  pci->pciSubSystemId = info.pci_subsystem_id;
  snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", info.pci_domain & 0xFFFF,
           info.pci_bus & 0xFF, info.pci_device & 0xFF);
  snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", info.pci_domain, info.pci_bus & 0xFF,
           info.pci_device & 0xFF);
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  Lock lock;
  const nvmlReturn_t result = usable(device, memory);
  if (result != NVML_SUCCESS) return result;
  DeviceState state;
  const nvmlReturn_t called = get_state(device, &state);
  if (called != NVML_SUCCESS) return called;
  memory->total = device->device.info.total_bytes;
  memory->used = state.used_bytes + device->device.info.reserved_bytes;
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  Lock lock;
  const nvmlReturn_t result = usable(device, memory);
  if (result != NVML_SUCCESS) return result;
  if (memory->version != kMemoryV2Version) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  DeviceState state;
  const nvmlReturn_t called = get_state(device, &state);
  if (called != NVML_SUCCESS) return called;
  memory->total = device->device.info.total_bytes;
  memory->reserved = device->device.info.reserved_bytes;
  memory->used = state.used_bytes;
  memory->free = memory->total - memory->reserved - memory->used;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, int* mode) {
  Lock lock;
  const nvmlReturn_t result = usable(device, mode);
  if (result != NVML_SUCCESS) return result;
  DeviceState state;
  const nvmlReturn_t called = get_state(device, &state);
  if (called == NVML_SUCCESS) *mode = static_cast<int>(state.compute_mode);
  return called;
}

GPUSIM_NVML nvmlDeviceSetComputeMode(nvmlDevice_t device, int mode) {
  Lock lock;
  const nvmlReturn_t result = usable(device, device);
  if (result != NVML_SUCCESS) return result;
  if (mode < 0 || mode > 3) return NVML_ERROR_INVALID_ARGUMENT;
  // Removed by NVIDIA; drivers answer that it is not supported.
  if (mode == static_cast<int>(ComputeMode::kExclusiveThread)) return NVML_ERROR_NOT_SUPPORTED;
  Request request = make_request(Op::kSetComputeMode, device->device.driver_index);
  request.arg = static_cast<uint64_t>(mode);
  Reply reply;
  return Session::instance().call(&request, &reply);
}

GPUSIM_NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  Lock lock;
  const nvmlReturn_t result = usable(device, major);
  if (result != NVML_SUCCESS) return result;
  if (minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *major = static_cast<int>(device->device.info.cc_major);
  *minor = static_cast<int>(device->device.info.cc_minor);
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int* architecture) {
  return get_fact(device, architecture,
                  [](const DeviceInfo& info) { return info.nvml_architecture; });
}

// MIG is not simulated. Cards without it answer "not supported", cards with it answer "disabled".
GPUSIM_NVML nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                 unsigned int* pending) {
  Lock lock;
  const nvmlReturn_t result = usable(device, current);
  if (result != NVML_SUCCESS) return result;
  if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (strcmp(device->device.info.model, "H100") != 0) return NVML_ERROR_NOT_SUPPORTED;
  *current = 0;
  *pending = 0;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned int* mode) {
  return get_fact(device, mode, [](const DeviceInfo&) { return 0; });  // bare metal, no vGPU
}

GPUSIM_NVML nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  Lock lock;
  const nvmlReturn_t result = usable(device, utilization);
  if (result != NVML_SUCCESS) return result;
  DeviceState state;
  const nvmlReturn_t called = get_state(device, &state);
  if (called != NVML_SUCCESS) return called;
  // `memory` is the time in which memory was read or written, which is not modelled apart.
  *utilization = {state.gpu_utilization_percent, state.gpu_utilization_percent / 2};
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                    nvmlProcessInfo_t* infos) {
  return list_processes(device, count, infos, false);
}

GPUSIM_NVML nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                       nvmlProcessInfo_t* infos) {
  return list_processes(device, count, infos, true);
}
