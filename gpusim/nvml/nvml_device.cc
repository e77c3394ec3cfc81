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
using gpusim::Reply;
using gpusim::Request;
using gpusim::nvml::Lock;
using gpusim::nvml::Session;
using gpusim::nvml::usable;
using gpusim::nvml::usable_state;

namespace {

// NVML_GPU_VIRTUALIZATION_MODE_*: of a vGPU as its guest sees it.
constexpr unsigned int kVirtualizationNone = 0;
constexpr unsigned int kVirtualizationVgpu = 2;
constexpr uint32_t kMemoryV2Since = 510;
constexpr uint32_t kMemoryLimitsSince = 615;

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
  DeviceState state;
  const nvmlReturn_t called = usable_state(device, memory, &state);
  if (called != NVML_SUCCESS) return called;
  memory->total = device->device.info.total_bytes;
  memory->used = state.used_bytes + device->device.info.reserved_bytes;
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  Lock lock;
  const nvmlReturn_t since = Session::instance().since(kMemoryV2Since);
  if (since != NVML_SUCCESS) return since;
  DeviceState state;
  const nvmlReturn_t called = usable_state(device, memory, &state);
  if (called != NVML_SUCCESS) return called;
  if (memory->version != kMemoryV2Version) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  memory->total = device->device.info.total_bytes;
  memory->reserved = device->device.info.reserved_bytes;
  memory->used = state.used_bytes;
  memory->free = memory->total - memory->reserved - memory->used;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, int* mode) {
  Lock lock;
  DeviceState state;
  const nvmlReturn_t called = usable_state(device, mode, &state);
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

// Cards without MIG answer "not supported".
GPUSIM_NVML nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                 unsigned int* pending) {
  Lock lock;
  const nvmlReturn_t result = usable(device, current);
  if (result != NVML_SUCCESS) return result;
  if (pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (device->device.info.mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
  *current = device->device.info.mig_enabled;
  *pending = *current;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned int* mode) {
  return get_fact(device, mode, [](const DeviceInfo& info) {
    return info.kind == gpusim::DeviceKind::kVgpu ? kVirtualizationVgpu : kVirtualizationNone;
  });
}

GPUSIM_NVML nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  Lock lock;
  DeviceState state;
  const nvmlReturn_t called = usable_state(device, utilization, &state);
  if (called != NVML_SUCCESS) return called;
  // `memory` is the time in which memory was read or written, which is not modelled apart.
  *utilization = {state.gpu_utilization_percent, state.gpu_utilization_percent / 2};
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int type,
                                        unsigned int counter, unsigned long long* count) {
  Lock lock;
  DeviceState state;
  const nvmlReturn_t result = usable_state(device, count, &state);
  if (result != NVML_SUCCESS) return result;
  // 0 corrected, 1 uncorrected; 0 since the last reset, 1 for life, which are not told apart here.
  if (type > 1 || counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
  *count = type == 0 ? state.ecc_corrected : state.ecc_uncorrected;
  return NVML_SUCCESS;
}

// Each field has its own answer; the call as a whole succeeds.
GPUSIM_NVML nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  Lock lock;
  Session& session = Session::instance();
  if (!session.initialized()) return NVML_ERROR_UNINITIALIZED;
  if (!session.owns(device) || values == nullptr || count < 0) return NVML_ERROR_INVALID_ARGUMENT;
  DeviceState state;
  const nvmlReturn_t result = session.get_state(device, &state);
  if (result != NVML_SUCCESS && result != NVML_ERROR_GPU_IS_LOST) return result;
  for (int i = 0; i < count; ++i) {
    nvmlFieldValue_t& value = values[i];
    value.latencyUsec = 0;
    value.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    if (value.fieldId != kFieldRecoveryAction) continue;
    // 0 none, 1 reset, 2 reboot.
    value.value.ullVal = 0;
    value.value.uiVal = result == NVML_ERROR_GPU_IS_LOST                       ? 2
                        : state.health == gpusim::DeviceHealth::kResetRequired ? 1
                                                                               : 0;
    value.valueType = kValueTypeUnsignedInt;
    value.nvmlReturn = NVML_SUCCESS;
  }
  return NVML_SUCCESS;
}

// The device-memory cgroup, since 615 (NVML.H). Setting it needs root.
GPUSIM_NVML nvmlDeviceSetMemoryLimits_v1(nvmlDevice_t device,
                                         const nvmlSetMemoryLimits_v1_t* limits) {
  Lock lock;
  const nvmlReturn_t result = usable(device, limits);
  if (result != NVML_SUCCESS) return result;
  const nvmlReturn_t since = Session::instance().since(kMemoryLimitsSince);
  if (since != NVML_SUCCESS) return since;
  if (limits->nameSpace == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  Request request = make_request(Op::kSetMemoryLimit, device->device.driver_index);
  request.memory_limit.soft = limits->softLimit;
  request.memory_limit.hard = limits->hardLimit;
  if (!gpusim::copy_text(limits->nameSpace, request.memory_limit.cgroup, gpusim::kCgroupTextSize)) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  Reply reply;
  return Session::instance().call(&request, &reply);
}

GPUSIM_NVML nvmlDeviceGetMemoryLimits_v1(nvmlDevice_t device, nvmlGetMemoryLimits_v1_t* limits) {
  Lock lock;
  const nvmlReturn_t result = usable(device, limits);
  if (result != NVML_SUCCESS) return result;
  const nvmlReturn_t since = Session::instance().since(kMemoryLimitsSince);
  if (since != NVML_SUCCESS) return since;
  if (limits->nameSpace == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  Request request = make_request(Op::kGetMemoryLimit, device->device.driver_index);
  if (!gpusim::copy_text(limits->nameSpace, request.memory_limit.cgroup, gpusim::kCgroupTextSize)) {
    return NVML_ERROR_INVALID_ARGUMENT;
  }
  Reply reply;
  const nvmlReturn_t called = Session::instance().call(&request, &reply);
  if (called != NVML_SUCCESS) return called;
  limits->softLimit = reply.memory_limit.soft;
  limits->hardLimit = reply.memory_limit.hard;
  limits->currentUsed = reply.memory_limit.current_used;
  return NVML_SUCCESS;
}
