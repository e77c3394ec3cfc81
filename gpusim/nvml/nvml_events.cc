// NVML: event sets. A set has a connection of its own; waiting on it holds no lock.
#include <time.h>

#include <set>

#include "common/event_stream.h"
#include "nvml/nvml_session.h"

using gpusim::EventEntry;
using gpusim::kMaxDevices;
using gpusim::Status;
using gpusim::nvml::Lock;
using gpusim::nvml::Session;
using gpusim::nvml::usable;

struct nvmlEventSet_st {
  gpusim::EventStream stream;
  unsigned long long types[kMaxDevices] = {};  // by driver index
  nvmlDevice_t devices[kMaxDevices] = {};
  EventEntry found[64];  // seen while another device was registered
  uint32_t found_count = 0;

  bool wants(const EventEntry& event) const {
    return event.device < kMaxDevices && (types[event.device] & event.type) != 0;
  }
};

namespace {

constexpr uint32_t kRecoveryEventsSince = 570;
constexpr unsigned int kNoInstance = 0xFFFFFFFF;

std::set<nvmlEventSet_t>& sets() {
  static auto* all = new std::set<nvmlEventSet_t>;
  return *all;
}

unsigned long long supported_types() {
  unsigned long long types = kEventSingleBitEcc | kEventDoubleBitEcc | kEventXidCritical;
  if (Session::instance().since(kRecoveryEventsSince) == NVML_SUCCESS) {
    types |= kEventGpuUnavailable | kEventGpuRecoveryAction;
  }
  return types;
}

int64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

void fill(const nvmlEventSet_st& set, const EventEntry& event, nvmlEventData_t* data) {
  *data = {set.devices[event.device], event.type, event.data, kNoInstance, kNoInstance};
}

}  // namespace

GPUSIM_NVML nvmlEventSetCreate(nvmlEventSet_t* set) {
  Lock lock;
  if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
  if (set == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  auto* made = new nvmlEventSet_st;
  if (made->stream.open(gpusim::driver_folder(), gpusim::Role::kObserver) != Status::kOk) {
    delete made;
    return NVML_ERROR_UNKNOWN;
  }
  sets().insert(made);
  *set = made;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* types) {
  Lock lock;
  const nvmlReturn_t result = usable(device, types);
  if (result != NVML_SUCCESS) return result;
  *types = supported_types();
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                     nvmlEventSet_t set) {
  Lock lock;
  const nvmlReturn_t result = usable(device, set);
  if (result != NVML_SUCCESS) return result;
  if (sets().count(set) == 0) return NVML_ERROR_INVALID_ARGUMENT;
  if ((types & ~supported_types()) != 0) return NVML_ERROR_NOT_SUPPORTED;
  // What happened before is not for this device; for those that were registered already it is kept.
  EventEntry event;
  while (set->stream.next(&event, 0) == Status::kOk) {
    if (set->wants(event) && set->found_count < 64) set->found[set->found_count++] = event;
  }
  set->types[device->device.driver_index] |= types;
  set->devices[device->device.driver_index] = device;
  return NVML_SUCCESS;
}

GPUSIM_NVML nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* data,
                                unsigned int timeout_ms) {
  {
    Lock lock;
    if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
    if (data == nullptr || sets().count(set) == 0) return NVML_ERROR_INVALID_ARGUMENT;
    if (set->found_count > 0) {
      fill(*set, set->found[0], data);
      --set->found_count;
      for (uint32_t i = 0; i < set->found_count; ++i) set->found[i] = set->found[i + 1];
      return NVML_SUCCESS;
    }
  }
  const int64_t deadline_ms = now_ms() + timeout_ms;
  while (true) {
    const int64_t left_ms = deadline_ms - now_ms();
    EventEntry event;
    const Status status = set->stream.next(
        &event, left_ms <= 0 ? 0 : static_cast<int>(left_ms > 1000000000 ? 1000000000 : left_ms));
    if (status == Status::kNotFound) return NVML_ERROR_TIMEOUT;
    if (status != Status::kOk) {
      // The driver is gone. A later call looks whether there is one again.
      set->stream.open(gpusim::driver_folder(), gpusim::Role::kObserver);
      return NVML_ERROR_UNKNOWN;
    }
    if (!set->wants(event)) continue;
    fill(*set, event, data);
    return NVML_SUCCESS;
  }
}

// Before MIG events had no instance ids; the rest of the struct is the same and left alone.
GPUSIM_NVML nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* data, unsigned int timeout_ms) {
  nvmlEventData_t full = {};
  if (data == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t result = nvmlEventSetWait_v2(set, &full, timeout_ms);
  if (result == NVML_SUCCESS) {
    data->device = full.device;
    data->eventType = full.eventType;
    data->eventData = full.eventData;
  }
  return result;
}

GPUSIM_NVML nvmlEventSetFree(nvmlEventSet_t set) {
  Lock lock;
  if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
  if (sets().erase(set) == 0) return NVML_ERROR_INVALID_ARGUMENT;
  delete set;
  return NVML_SUCCESS;
}
