// What NVML answers: one row a fact (layouts and codes of nvml.h).
#include <cstring>
#include <vector>

#include "abi.h"

using gpu_facts::Library;
using gpu_facts::row;

namespace {

using Device = void*;
using Set = void*;

struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
struct Memory {
  unsigned long long total, free, used;
};
struct Process {
  unsigned int pid;
  unsigned long long used;
  unsigned int gpu_instance, compute_instance;
};
struct Pci {
  char legacy[16];
  unsigned int domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct Event {
  Device device;
  unsigned long long type, data;
  unsigned int gpu_instance, compute_instance;
};

void device_facts(const Library& nvml, Device device) {
  char uuid[96] = "";
  row("nvmlDeviceGetUUID",
      nvml.call<Device, char*, unsigned>("nvmlDeviceGetUUID", device, uuid, 96));
  row("UUID is GPU- and 36 characters", strncmp(uuid, "GPU-", 4) == 0 && strlen(uuid) == 40);
  row("nvmlDeviceGetUUID, no room",
      nvml.call<Device, char*, unsigned>("nvmlDeviceGetUUID", device, uuid, 5));
  Device found = nullptr;
  nvml.call<Device, char*, unsigned>("nvmlDeviceGetUUID", device, uuid, 96);
  row("nvmlDeviceGetHandleByUUID",
      nvml.call<const char*, Device*>("nvmlDeviceGetHandleByUUID", uuid, &found));
  row("  gives the same handle", found == device);
  row("nvmlDeviceGetHandleByUUID, unknown",
      nvml.call<const char*, Device*>("nvmlDeviceGetHandleByUUID",
                                      "GPU-00000000-0000-0000-0000-000000000000", &found));
  Pci pci = {};
  row("nvmlDeviceGetPciInfo_v3", nvml.call<Device, Pci*>("nvmlDeviceGetPciInfo_v3", device, &pci));
  row("  vendor is 10DE", (pci.device_id & 0xFFFF) == 0x10DE);
  row("  busId is 16 characters", strlen(pci.bus_id) == 16);
  row("nvmlDeviceGetHandleByPciBusId_v2",
      nvml.call<const char*, Device*>("nvmlDeviceGetHandleByPciBusId_v2", pci.bus_id, &found));
  row("  gives the same handle", found == device);
}

void plain_facts(const Library& nvml, Device device) {
  char name[96] = "";
  row("nvmlDeviceGetName",
      nvml.call<Device, char*, unsigned>("nvmlDeviceGetName", device, name, 96));
  row("  begins with NVIDIA", strncmp(name, "NVIDIA", 6) == 0);
  unsigned number = 99;
  row("nvmlDeviceGetIndex", nvml.call<Device, unsigned*>("nvmlDeviceGetIndex", device, &number));
  row("  is 0", number == 0);
  row("nvmlDeviceGetMinorNumber",
      nvml.call<Device, unsigned*>("nvmlDeviceGetMinorNumber", device, &number));
  int major = 0;
  int minor = -1;
  row("nvmlDeviceGetCudaComputeCapability",
      nvml.call<Device, int*, int*>("nvmlDeviceGetCudaComputeCapability", device, &major, &minor));
  row("  is 5.0 or more", major >= 5 && minor >= 0);
  unsigned architecture = 0;
  row("nvmlDeviceGetArchitecture",
      nvml.call<Device, unsigned*>("nvmlDeviceGetArchitecture", device, &architecture));
  struct {
    unsigned gpu, memory;
  } busy = {999, 999};
  row("nvmlDeviceGetUtilizationRates",
      nvml.call<Device, void*>("nvmlDeviceGetUtilizationRates", device, &busy));
  row("  are percentages", busy.gpu <= 100 && busy.memory <= 100);
  char version[80] = "";
  row("nvmlSystemGetDriverVersion",
      nvml.call<char*, unsigned>("nvmlSystemGetDriverVersion", version, 80));
  row("  begins with a number", version[0] >= '1' && version[0] <= '9');
  int cuda = 0;
  row("nvmlSystemGetCudaDriverVersion_v2",
      nvml.call<int*>("nvmlSystemGetCudaDriverVersion_v2", &cuda));
  row("  is 11000 or more", cuda >= 11000);
}

void memory_facts(const Library& nvml, Device device) {
  MemoryV2 v2 = {};
  row("nvmlDeviceGetMemoryInfo_v2, version 0",
      nvml.call<Device, MemoryV2*>("nvmlDeviceGetMemoryInfo_v2", device, &v2));
  v2.version = 0x02000028;
  row("nvmlDeviceGetMemoryInfo_v2",
      nvml.call<Device, MemoryV2*>("nvmlDeviceGetMemoryInfo_v2", device, &v2));
  row("  total = reserved + free + used", v2.total == v2.reserved + v2.free + v2.used);
  row("  something is reserved", v2.reserved > 0);
  Memory v1 = {};
  row("nvmlDeviceGetMemoryInfo",
      nvml.call<Device, Memory*>("nvmlDeviceGetMemoryInfo", device, &v1));
  row("  used includes the reserved part", v1.used == v2.used + v2.reserved);
  row("  total is the same", v1.total == v2.total);
}

void process_facts(const Library& nvml, Device device) {
  for (const char* name :
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3"}) {
    unsigned int count = 0;
    const int code = nvml.call<Device, unsigned*, Process*>(name, device, &count, nullptr);
    row(name, std::string("0 of room: ") +
                  (code == (count == 0 ? 0 : 7) ? "0, or 7 and the count" : std::to_string(code)));
    std::vector<Process> rows(count + 8);
    count = static_cast<unsigned>(rows.size());
    row("  with room", nvml.call<Device, unsigned*, Process*>(name, device, &count, rows.data()));
  }
  struct {
    unsigned int version, mode, count;
    void* rows;
  } list = {0, 2, 0, nullptr};
  row("nvmlDeviceGetRunningProcessDetailList, version 0",
      nvml.call<Device, void*>("nvmlDeviceGetRunningProcessDetailList", device, &list));
}

void mode_and_event_facts(const Library& nvml, Device device) {
  int mode = -1;
  row("nvmlDeviceGetComputeMode",
      nvml.call<Device, int*>("nvmlDeviceGetComputeMode", device, &mode));
  row("  is DEFAULT", mode == 0);
  row("nvmlDeviceSetComputeMode, EXCLUSIVE_THREAD",
      nvml.call<Device, int>("nvmlDeviceSetComputeMode", device, 1));
  unsigned long long types = 0;
  row("nvmlDeviceGetSupportedEventTypes",
      nvml.call<Device, unsigned long long*>("nvmlDeviceGetSupportedEventTypes", device, &types));
  row("  XidCritical is one", (types & 8) != 0);
  Set set = nullptr;
  row("nvmlEventSetCreate", nvml.call<Set*>("nvmlEventSetCreate", &set));
  row("nvmlDeviceRegisterEvents",
      nvml.call<Device, unsigned long long, Set>("nvmlDeviceRegisterEvents", device, 8, set));
  Event event = {};
  row("nvmlEventSetWait_v2, nothing happens",
      nvml.call<Set, Event*, unsigned>("nvmlEventSetWait_v2", set, &event, 10));
  row("nvmlEventSetFree", nvml.call<Set>("nvmlEventSetFree", set));
}

}  // namespace

int main() {
  const Library nvml("libnvidia-ml.so.1");
  unsigned int count = 0;
  row("nvmlDeviceGetCount_v2 before nvmlInit_v2",
      nvml.call<unsigned*>("nvmlDeviceGetCount_v2", &count));
  row("nvmlInit_v2", nvml.call<>("nvmlInit_v2"));
  row("nvmlDeviceGetCount_v2", nvml.call<unsigned*>("nvmlDeviceGetCount_v2", &count));
  Device device = nullptr;
  row("nvmlDeviceGetHandleByIndex_v2, index too high",
      nvml.call<unsigned, Device*>("nvmlDeviceGetHandleByIndex_v2", count, &device));
  row("nvmlDeviceGetHandleByIndex_v2",
      nvml.call<unsigned, Device*>("nvmlDeviceGetHandleByIndex_v2", 0, &device));
  device_facts(nvml, device);
  plain_facts(nvml, device);
  memory_facts(nvml, device);
  process_facts(nvml, device);
  mode_and_event_facts(nvml, device);
  row("nvmlShutdown", nvml.call<>("nvmlShutdown"));
  row("nvmlShutdown again", nvml.call<>("nvmlShutdown"));
  return 0;
}
