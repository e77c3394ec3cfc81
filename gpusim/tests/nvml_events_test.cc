// NVML of a GPU in trouble: events, errors, process lists, memory limits, MIG; other drivers.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "nvml/nvml_types.h"
#include "tests/harness.h"
#include "tests/nvml_fixture.h"

namespace gpusim::test {
namespace {

using NvmlEventsTest = NvmlFixture;

// KDP's health loop: create, ask what is supported, register, wait 5000 ms.
TEST_F(NvmlEventsTest, XidReachesAWaitingSet) {
  Gpusimd driver("2xL4");
  init(driver.dir());
  nvmlEventSet_t set = nullptr;
  ASSERT_EQ(call("nvmlEventSetCreate", &set), NVML_SUCCESS);
  unsigned long long types = 0;
  ASSERT_EQ(call("nvmlDeviceGetSupportedEventTypes", device(1), &types), NVML_SUCCESS);
  EXPECT_EQ(types & 0xBull, 0xBull) << "SBE, DBE, XidCritical";
  EXPECT_EQ(call("nvmlDeviceRegisterEvents", device(1), types, set), NVML_SUCCESS);
  EXPECT_EQ(call("nvmlDeviceRegisterEvents", device(1), 1ull << 40, set), NVML_ERROR_NOT_SUPPORTED);
  nvmlEventData_t data = {};
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &data, 0u), NVML_ERROR_TIMEOUT);

  std::thread waiter(
      [&] { EXPECT_EQ(call("nvmlEventSetWait_v2", set, &data, 20000u), NVML_SUCCESS); });
  EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "0", "31"}).exit_code, 0) << "not registered for";
  EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "1", "48"}).exit_code, 0);
  // Other calls go on meanwhile.
  unsigned int count = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &count), NVML_SUCCESS);
  waiter.join();
  EXPECT_EQ(data.device, device(1));
  EXPECT_EQ(data.eventType, 0x8u);
  EXPECT_EQ(data.eventData, 48u);
  EXPECT_EQ(data.gpuInstanceId, 0xFFFFFFFFu);
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &data, 20000u), NVML_SUCCESS);
  EXPECT_EQ(data.eventType, 0x8000u) << "recovery action";
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &data, 0u), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(call("nvmlEventSetFree", set), NVML_SUCCESS);
  EXPECT_EQ(call("nvmlEventSetFree", set), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &data, 0u), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlEventsTest, EventsSurviveARestartOfTheDriver) {
  Gpusimd driver("1xL4");
  init(driver.dir());
  nvmlEventSet_t set = nullptr;
  ASSERT_EQ(call("nvmlEventSetCreate", &set), NVML_SUCCESS);
  ASSERT_EQ(call("nvmlDeviceRegisterEvents", device(0), 0x8ull, set), NVML_SUCCESS);
  driver.restart();
  nvmlEventData_t data = {};
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &data, 20000u), NVML_ERROR_UNKNOWN);
  EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "0", "13"}).exit_code, 0);
  EXPECT_EQ(call("nvmlEventSetWait_v2", set, &data, 20000u), NVML_SUCCESS);
  EXPECT_EQ(data.eventData, 13u);
}

// 15 GPU_IS_LOST from everything that concerns the lost GPU, field 230 says reboot; the others work.
TEST_F(NvmlEventsTest, LostGpu) {
  Gpusimd driver("2xL4");
  init(driver.dir());
  const nvmlDevice_t lost = device(0);
  ASSERT_EQ(gpusim(driver, {"lose", "--gpu", "0"}).exit_code, 0);
  nvmlDevice_t handle = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 0u, &handle), NVML_ERROR_GPU_IS_LOST);
  nvmlMemory_v2_t memory = {};
  memory.version = kMemoryV2Version;
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo_v2", lost, &memory), NVML_ERROR_GPU_IS_LOST);
  char text[96];
  EXPECT_EQ(call("nvmlDeviceGetUUID", lost, text, 96u), NVML_ERROR_GPU_IS_LOST);
  unsigned int count = 0;
  EXPECT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", lost, &count,
                 static_cast<nvmlProcessInfo_t*>(nullptr)),
            NVML_ERROR_GPU_IS_LOST);
  nvmlFieldValue_t field = {};
  field.fieldId = 230;
  EXPECT_EQ(call("nvmlDeviceGetFieldValues", lost, 1, &field), NVML_SUCCESS);
  EXPECT_EQ(field.value.uiVal, 2u) << "reboot";
  EXPECT_EQ(call("nvmlDeviceGetUUID", device(1), text, 96u), NVML_SUCCESS);
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &count), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);

  ASSERT_EQ(gpusim(driver, {"restore", "--gpu", "0"}).exit_code, 0);
  EXPECT_EQ(call("nvmlDeviceGetUUID", lost, text, 96u), NVML_SUCCESS);
  ASSERT_EQ(gpusim(driver, {"restore", "--gpu", "0", "--new-uuid"}).exit_code, 0);
  EXPECT_EQ(call("nvmlDeviceGetUUID", lost, text, 96u), NVML_ERROR_GPU_IS_LOST)
      << "another GPU: this session has to begin anew";
  EXPECT_EQ(call("nvmlShutdown"), NVML_SUCCESS);
  init(driver.dir());
  EXPECT_EQ(call("nvmlDeviceGetUUID", device(0), text, 96u), NVML_SUCCESS);
  EXPECT_EQ(driver.uuid(0), text);
}

// 16 RESET_REQUIRED from what says how the GPU does; who it is can be asked.
TEST_F(NvmlEventsTest, ResetRequired) {
  Gpusimd driver("1xL4");
  init(driver.dir());
  ASSERT_EQ(gpusim(driver, {"xid", "--gpu", "0", "95"}).exit_code, 0);
  nvmlMemory_t memory = {};
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo", device(0), &memory), NVML_ERROR_RESET_REQUIRED);
  char text[96];
  EXPECT_EQ(call("nvmlDeviceGetUUID", device(0), text, 96u), NVML_SUCCESS);
  nvmlFieldValue_t field[2] = {};
  field[0].fieldId = 230;
  field[1].fieldId = 1;
  EXPECT_EQ(call("nvmlDeviceGetFieldValues", device(0), 2, field), NVML_SUCCESS);
  EXPECT_EQ(field[0].value.uiVal, 1u) << "reset";
  EXPECT_EQ(field[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(gpusim(driver, {"reset", "--gpu", "0"}).exit_code, 0);
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo", device(0), &memory), NVML_SUCCESS);
}

// DCGM-style: mode 2 is NVML_PROCESS_MODE_MPS; version and two-call size rule; v1 rows are 16 bytes.
TEST_F(NvmlEventsTest, ProcessDetailList) {
  Gpusimd driver("1xL4");
  init(driver.dir());
  Mps mps(driver);
  mps.start_server();
  const auto one = probe(mps.client(), {"init", "ctx", "hold"});
  const auto two = probe(mps.client(), {"init", "ctx", "hold"});
  for (int i = 0; i < 3; ++i) one->line();
  for (int i = 0; i < 3; ++i) two->line();
  nvmlProcessDetailList_v1_t list = {};
  EXPECT_EQ(call("nvmlDeviceGetRunningProcessDetailList", device(0), &list),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  list.version = 0x01000018;
  list.mode = 2;
  EXPECT_EQ(call("nvmlDeviceGetRunningProcessDetailList", device(0), &list),
            NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(list.numProcArrayEntries, 2u);
  nvmlProcessDetail_v1_t rows[4] = {};
  list.procArray = rows;
  list.numProcArrayEntries = 4;
  ASSERT_EQ(call("nvmlDeviceGetRunningProcessDetailList", device(0), &list), NVML_SUCCESS);
  EXPECT_EQ(list.numProcArrayEntries, 2u);
  EXPECT_EQ(rows[0].usedGpuMemory >> 20, 128u);
  list.mode = 0;
  list.numProcArrayEntries = 4;
  ASSERT_EQ(call("nvmlDeviceGetRunningProcessDetailList", device(0), &list), NVML_SUCCESS);
  EXPECT_EQ(list.numProcArrayEntries, 1u) << "the server";
  nvmlProcessInfo_v1_t old[2] = {};
  unsigned int count = 1;
  EXPECT_EQ(call("nvmlDeviceGetMPSComputeRunningProcesses", device(0), &count, old),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(call("nvmlDeviceGetMPSComputeRunningProcesses", device(0), &count, old), NVML_SUCCESS);
  EXPECT_EQ(old[1].usedGpuMemory >> 20, 128u);
  char name[256];
  EXPECT_EQ(call("nvmlSystemGetProcessName", static_cast<unsigned int>(one->pid()), name, 256u),
            NVML_SUCCESS);
  EXPECT_STREQ(name, GPUSIM_PROBE);
}

TEST_F(NvmlEventsTest, HandleByPciBusId) {
  Gpusimd driver("3xL4");
  init(driver.dir());
  nvmlDevice_t handle = nullptr;
  for (const char* id : {"00000000:02:00.0", "0000:02:00.0", "02:00.0", "02:00"}) {
    EXPECT_EQ(call("nvmlDeviceGetHandleByPciBusId_v2", id, &handle), NVML_SUCCESS) << id;
    EXPECT_EQ(handle, device(1)) << id;
  }
  EXPECT_EQ(call("nvmlDeviceGetHandleByPciBusId_v2", "0000:77:00.0", &handle),
            NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(call("nvmlDeviceGetHandleByPciBusId_v2", "nonsense", &handle),
            NVML_ERROR_INVALID_ARGUMENT);
}

// NVML.H: clear = soft 0, hard UINT64_MAX. r615 has them, 580 does not.
TEST_F(NvmlEventsTest, MemoryLimits) {
  {
    Gpusimd older("1xL4");
    init(older.dir());
    nvmlGetMemoryLimits_v1_t read = {};
    read.nameSpace = "/a";
    EXPECT_EQ(call("nvmlDeviceGetMemoryLimits_v1", device(0), &read),
              NVML_ERROR_FUNCTION_NOT_FOUND);
    call("nvmlShutdown");
  }
  Gpusimd driver("1xL4", {"--driver", "615"});
  init(driver.dir());
  const nvmlSetMemoryLimits_v1_t set = {"/sys/fs/cgroup/a", 1ull << 20, 1ull << 30};
  EXPECT_EQ(call("nvmlDeviceSetMemoryLimits_v1", device(0), &set), NVML_SUCCESS);
  nvmlGetMemoryLimits_v1_t read = {};
  read.nameSpace = "/sys/fs/cgroup/a";
  EXPECT_EQ(call("nvmlDeviceGetMemoryLimits_v1", device(0), &read), NVML_SUCCESS);
  EXPECT_EQ(read.softLimit, 1ull << 20);
  EXPECT_EQ(read.hardLimit, 1ull << 30);
  EXPECT_EQ(read.currentUsed, 0u);
  const nvmlSetMemoryLimits_v1_t bad = {"a", 0, 1ull << 30};
  EXPECT_EQ(call("nvmlDeviceSetMemoryLimits_v1", device(0), &bad), NVML_ERROR_INVALID_ARGUMENT);
  const nvmlSetMemoryLimits_v1_t none = {nullptr, 0, 0};
  EXPECT_EQ(call("nvmlDeviceSetMemoryLimits_v1", device(0), &none), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlEventsTest, MigDevices) {
  Gpusimd driver("1xA100-40:3g.20gb+1g.5gb,1xL4");
  init(driver.dir());
  unsigned int value = 0;
  unsigned int pending = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &value), NVML_SUCCESS);
  EXPECT_EQ(value, 2u) << "GPUs only";
  EXPECT_EQ(call("nvmlDeviceGetMigMode", device(0), &value, &pending), NVML_SUCCESS);
  EXPECT_EQ(value, 1u);
  nvmlDevice_t mig = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetMigDeviceHandleByIndex", device(0), 1u, &mig), NVML_SUCCESS);
  EXPECT_EQ(call("nvmlDeviceGetMigDeviceHandleByIndex", device(0), 2u, &mig), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(call("nvmlDeviceGetMigDeviceHandleByIndex", device(1), 0u, &mig),
            NVML_ERROR_NOT_SUPPORTED);
  char uuid[96];
  EXPECT_EQ(call("nvmlDeviceGetUUID", mig, uuid, 96u), NVML_SUCCESS);
  EXPECT_EQ(std::string(uuid).substr(0, 4), "MIG-");
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", static_cast<const char*>(uuid), &found),
            NVML_SUCCESS);
  EXPECT_EQ(found, mig);
  EXPECT_EQ(call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig, &found), NVML_SUCCESS);
  EXPECT_EQ(found, device(0));
  EXPECT_EQ(call("nvmlDeviceGetGpuInstanceId", mig, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 2u);

  // CUDA: a GPU that is divided gives way to its parts, and a process uses one part.
  Environment environment = driver.environment();
  EXPECT_EQ(probe_lines(environment, {"init", "count", "name:0"}),
            "init 0\ncount 0 1\nname 0 NVIDIA A100-SXM4-40GB MIG 3g.20gb\n");
  environment["CUDA_VISIBLE_DEVICES"] = uuid;
  const auto client = probe(environment, {"init", "count", "ctx", "info", "hold"});
  EXPECT_EQ(client->line(), "init 0");
  EXPECT_EQ(client->line(), "count 0 1");
  EXPECT_EQ(client->line(), "ctx 0");
  EXPECT_EQ(client->line(), "info 0 4838 4966");
  client->line();
  const auto rows = processes("nvmlDeviceGetComputeRunningProcesses_v3", device(0));
  ASSERT_EQ(rows.size(), 1u) << "a GPU's list has its parts' processes";
  EXPECT_EQ(rows[0].gpuInstanceId, 2u);
  EXPECT_EQ(rows[0].computeInstanceId, 0u);
  const std::string cdi = read_file(driver.dir() + "/cdi/nvidia.yaml");
  EXPECT_NE(cdi.find("- name: \"0:1\""), std::string::npos) << "as nvidia-ctk names them";
  EXPECT_NE(cdi.find(std::string("- name: \"") + uuid + "\""), std::string::npos);
}

TEST_F(NvmlEventsTest, Vgpu) {
  Gpusimd driver("1xL4-6Q");
  init(driver.dir());
  unsigned int mode = 0;
  EXPECT_EQ(call("nvmlDeviceGetVirtualizationMode", device(0), &mode), NVML_SUCCESS);
  EXPECT_EQ(mode, 2u) << "NVML_GPU_VIRTUALIZATION_MODE_VGPU";
  nvmlMemory_t memory = {};
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo", device(0), &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total >> 20, 6144u);
}

// A function that came with a later driver is not found in an earlier one.
TEST_F(NvmlEventsTest, DriverVersions) {
  const struct {
    const char* driver;
    const char* version;
    int cuda;
    int memory_v2;
  } kCases[] = {
      {"470", "470.256.02-gpusim", 11040, NVML_ERROR_FUNCTION_NOT_FOUND},
      {"535", "535.261.03-gpusim", 12020, NVML_SUCCESS},
      {"615", "615.71.09-gpusim", 13040, NVML_SUCCESS},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.driver);
    Gpusimd driver("1xT4", {"--driver", test.driver});
    init(driver.dir());
    char text[80];
    EXPECT_EQ(call("nvmlSystemGetDriverVersion", text, 80u), NVML_SUCCESS);
    EXPECT_STREQ(text, test.version);
    int cuda = 0;
    EXPECT_EQ(call("nvmlSystemGetCudaDriverVersion_v2", &cuda), NVML_SUCCESS);
    EXPECT_EQ(cuda, test.cuda);
    nvmlMemory_v2_t memory = {};
    memory.version = kMemoryV2Version;
    EXPECT_EQ(call("nvmlDeviceGetMemoryInfo_v2", device(0), &memory), test.memory_v2);
    EXPECT_EQ(probe_lines(driver.environment(), {"version", "init"}),
              "version 0 " + std::to_string(test.cuda) + "\ninit 0\n");
    EXPECT_NE(gpusim(driver, {"smi"}).output.find(test.version), std::string::npos);
    call("nvmlShutdown");
  }
}

}  // namespace
}  // namespace gpusim::test
