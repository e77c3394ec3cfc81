// NVML: who uses a device.
#include <cstdio>

#include "common/text.h"
#include "nvml/nvml_session.h"

using gpusim::DeviceKind;
using gpusim::make_request;
using gpusim::Op;
using gpusim::ProcessEntry;
using gpusim::ProcessKind;
using gpusim::Reply;
using gpusim::Request;
using gpusim::nvml::Lock;
using gpusim::nvml::Session;
using gpusim::nvml::usable_state;

namespace {

constexpr unsigned int kNoInstance = 0xFFFFFFFF;  // without MIG
constexpr uint32_t kMpsListSince = 510;
constexpr uint32_t kDetailListSince = 530;

struct Row {
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance;
  unsigned int compute_instance;
};

nvmlReturn_t list_of(uint32_t driver_index, bool mps_clients, unsigned int gpu_instance,
                     unsigned int compute_instance, unsigned int room, unsigned int* found,
                     void (*put)(void*, unsigned int, const Row&), void* rows) {
  uint64_t at = 0;
  uint64_t total = 0;
  do {
    Request request = make_request(Op::kListProcesses, driver_index);
    request.arg = at;
    Reply reply;
    const nvmlReturn_t called = Session::instance().call(&request, &reply);
    if (called != NVML_SUCCESS) return called;
    total = reply.value;
    if (reply.count == 0) break;
    for (uint32_t i = 0; i < reply.count; ++i) {
      const ProcessEntry& process = reply.processes[i];
      if ((process.kind == ProcessKind::kMpsClient) != mps_clients) continue;
      if (*found < room) {
        put(rows, *found,
            {static_cast<unsigned int>(process.pid), process.used_bytes, gpu_instance,
             compute_instance});
      }
      ++*found;
    }
    at += reply.count;
  } while (at < total);
  return NVML_SUCCESS;
}

// NVML's protocol: too little room (0 included) gives 7 and the count that is needed. Compute and
// MPS lists: the server shows as an ordinary compute process, its clients only in the MPS list. A
// GPU's list has the processes on its MIG devices too.
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned int* count, bool mps_clients,
                            void (*put)(void*, unsigned int, const Row&), void* rows) {
  gpusim::DeviceState state;
  const nvmlReturn_t result = usable_state(device, count, &state);
  if (result != NVML_SUCCESS) return result;
  Session& session = Session::instance();
  const unsigned int room = rows == nullptr ? 0 : *count;
  unsigned int found = 0;
  for (uint32_t i = 0; i < session.count_with_mig(); ++i) {
    const gpusim::VisibleDevice& other = session.handle(i)->device;
    const bool is_mig = other.info.kind == DeviceKind::kMig;
    const bool is_part = is_mig && other.info.parent == device->device.driver_index;
    if (session.handle(i) != device && !is_part) continue;
    const nvmlReturn_t listed =
        list_of(other.driver_index, mps_clients, is_mig ? other.info.gpu_instance_id : kNoInstance,
                is_mig ? other.info.compute_instance_id : kNoInstance, room, &found, put, rows);
    if (listed != NVML_SUCCESS) return listed;
  }
  *count = found;
  return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

void put_v1(void* rows, unsigned int at, const Row& row) {
  static_cast<nvmlProcessInfo_v1_t*>(rows)[at] = {row.pid, row.used_bytes};
}

void put_v2(void* rows, unsigned int at, const Row& row) {
  static_cast<nvmlProcessInfo_t*>(rows)[at] = {row.pid, row.used_bytes, row.gpu_instance,
                                               row.compute_instance};
}

void put_detail(void* rows, unsigned int at, const Row& row) {
  static_cast<nvmlProcessDetail_v1_t*>(rows)[at] = {row.pid, row.used_bytes, row.gpu_instance,
                                                    row.compute_instance, 0};
}

}  // namespace

GPUSIM_NVML nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                 nvmlProcessInfo_v1_t* infos) {
  Lock lock;
  return list_processes(device, count, false, put_v1, infos);
}

GPUSIM_NVML nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                    nvmlProcessInfo_t* infos) {
  Lock lock;
  return list_processes(device, count, false, put_v2, infos);
}

GPUSIM_NVML nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                    nvmlProcessInfo_t* infos) {
  Lock lock;
  const nvmlReturn_t since = Session::instance().since(kMpsListSince);
  if (since != NVML_SUCCESS) return since;
  return list_processes(device, count, false, put_v2, infos);
}

GPUSIM_NVML nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                    nvmlProcessInfo_v1_t* infos) {
  Lock lock;
  return list_processes(device, count, true, put_v1, infos);
}

GPUSIM_NVML nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                       nvmlProcessInfo_t* infos) {
  Lock lock;
  return list_processes(device, count, true, put_v2, infos);
}

// "Volta or newer".
GPUSIM_NVML nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                       nvmlProcessInfo_t* infos) {
  Lock lock;
  const nvmlReturn_t since = Session::instance().since(kMpsListSince);
  if (since != NVML_SUCCESS) return since;
  if (Session::instance().owns(device) && device->device.info.cc_major < 7) {
    return NVML_ERROR_NOT_SUPPORTED;
  }
  return list_processes(device, count, true, put_v2, infos);
}

GPUSIM_NVML nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     nvmlProcessInfo_t*) {
  Lock lock;
  gpusim::DeviceState state;
  const nvmlReturn_t result = usable_state(device, count, &state);
  if (result == NVML_SUCCESS) *count = 0;  // nothing draws here
  return result;
}

GPUSIM_NVML nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                  nvmlProcessDetailList_v1_t* list) {
  Lock lock;
  const nvmlReturn_t since = Session::instance().since(kDetailListSince);
  if (since != NVML_SUCCESS) return since;
  if (list == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->version != kProcessDetailListV1Version) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  if (list->mode > kProcessModeMps) return NVML_ERROR_INVALID_ARGUMENT;
  if (list->mode == kProcessModeGraphics) {
    gpusim::DeviceState state;
    const nvmlReturn_t result = usable_state(device, list, &state);
    if (result == NVML_SUCCESS) list->numProcArrayEntries = 0;
    return result;
  }
  return list_processes(device, &list->numProcArrayEntries, list->mode == kProcessModeMps,
                        put_detail, list->procArray);
}

// The first word of its command line, as seen from here.
GPUSIM_NVML nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  {
    Lock lock;
    if (!Session::instance().initialized()) return NVML_ERROR_UNINITIALIZED;
  }
  if (name == nullptr || length == 0) return NVML_ERROR_INVALID_ARGUMENT;
  char path[64];
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  FILE* file = fopen(path, "re");
  if (file == nullptr) return NVML_ERROR_NOT_FOUND;
  char text[1024];
  const size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = '\0';
  return gpusim::copy_text(text, name, length) ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}
