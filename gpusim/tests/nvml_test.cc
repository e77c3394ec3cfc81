// libnvidia-ml.so.1 through dlopen, as an agent uses it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "nvml/nvml_types.h"
#include "tests/harness.h"
#include "tests/nvml_fixture.h"

namespace gpusim::test {
namespace {

constexpr unsigned long long kMiB = 1024 * 1024;

using NvmlTest = NvmlFixture;

TEST_F(NvmlTest, WithoutADriver) {
  setenv("GPUSIM_DIR", "/nowhere", 1);
  EXPECT_EQ(call("nvmlInit_v2"), NVML_ERROR_DRIVER_NOT_LOADED);
  unsigned int count = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(call("nvmlShutdown"), NVML_ERROR_UNINITIALIZED);
}

TEST_F(NvmlTest, Versions) {
  Gpusimd driver("1xL4");
  init(driver.dir());
  char text[96] = {};
  EXPECT_EQ(call("nvmlSystemGetDriverVersion", text, 80u), NVML_SUCCESS);
  EXPECT_STREQ(text, "580.95.05-gpusim") << "parsers read the leading number; the rest is honest";
  EXPECT_EQ(call("nvmlSystemGetDriverVersion", text, 5u), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(call("nvmlSystemGetNVMLVersion", text, 80u), NVML_SUCCESS);
  int version = 0;
  EXPECT_EQ(call("nvmlSystemGetCudaDriverVersion_v2", &version), NVML_SUCCESS);
  EXPECT_EQ(version, 13000);
}

TEST_F(NvmlTest, DeviceFacts) {
  Gpusimd driver("1xL4,1xH100");
  init(driver.dir());
  unsigned int count = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &count), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  nvmlDevice_t none = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", 2u, &none), NVML_ERROR_INVALID_ARGUMENT);
  const nvmlDevice_t h100 = device(1);
  char text[96] = {};
  EXPECT_EQ(call("nvmlDeviceGetName", h100, text, 96u), NVML_SUCCESS);
  EXPECT_STREQ(text, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(call("nvmlDeviceGetUUID", h100, text, 96u), NVML_SUCCESS);
  EXPECT_EQ(driver.uuid(1), text);
  nvmlDevice_t by_uuid = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", static_cast<const char*>(text), &by_uuid),
            NVML_SUCCESS);
  EXPECT_EQ(by_uuid, h100);
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", "GPU-unknown", &by_uuid), NVML_ERROR_NOT_FOUND);
  int major = 0;
  int minor = 0;
  EXPECT_EQ(call("nvmlDeviceGetCudaComputeCapability", h100, &major, &minor), NVML_SUCCESS);
  EXPECT_EQ(major * 10 + minor, 90);
  unsigned int value = 0;
  EXPECT_EQ(call("nvmlDeviceGetArchitecture", h100, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 9u) << "Hopper";
  EXPECT_EQ(call("nvmlDeviceGetArchitecture", device(0), &value), NVML_SUCCESS);
  EXPECT_EQ(value, 8u) << "Ada";
  EXPECT_EQ(call("nvmlDeviceGetMinorNumber", h100, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(call("nvmlDeviceGetVirtualizationMode", h100, &value), NVML_SUCCESS);
  EXPECT_EQ(value, 0u) << "no vGPU";
  unsigned int pending = 1;
  EXPECT_EQ(call("nvmlDeviceGetMigMode", h100, &value, &pending), NVML_SUCCESS);
  EXPECT_EQ(value + pending, 0u);
  EXPECT_EQ(call("nvmlDeviceGetMigMode", device(0), &value, &pending), NVML_ERROR_NOT_SUPPORTED);
  nvmlPciInfo_t pci = {};
  EXPECT_EQ(call("nvmlDeviceGetPciInfo_v3", h100, &pci), NVML_SUCCESS);
  EXPECT_STREQ(pci.busId, "00000000:02:00.0");
  EXPECT_STREQ(pci.busIdLegacy, "0000:02:00.0");
  EXPECT_EQ(pci.pciDeviceId & 0xFFFF, 0x10DEu) << "NVIDIA's vendor id";
  EXPECT_EQ(call("nvmlDeviceGetUUID", reinterpret_cast<nvmlDevice_t>(text), text, 96u),
            NVML_ERROR_INVALID_ARGUMENT)
      << "a foreign handle is no crash";
}

// NVML: v1 counts the reserved part as used, v2 shows it apart; wrong version => 25.
TEST_F(NvmlTest, MemoryArithmetic) {
  Gpusimd driver("1xL4");
  init(driver.dir());
  const auto client = probe(driver.environment(), {"init", "ctx", "alloc:1000", "hold"});
  for (int i = 0; i < 4; ++i) client->line();
  nvmlMemory_v2_t v2 = {};
  EXPECT_EQ(call("nvmlDeviceGetMemoryInfo_v2", device(0), &v2),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  v2.version = 0x02000028;
  ASSERT_EQ(call("nvmlDeviceGetMemoryInfo_v2", device(0), &v2), NVML_SUCCESS);
  EXPECT_EQ(v2.total / kMiB, 23034u);
  EXPECT_EQ(v2.reserved / kMiB, 471u);
  EXPECT_EQ(v2.used / kMiB, 1128u) << "1000 and one context";
  EXPECT_EQ(v2.free, v2.total - v2.reserved - v2.used);
  nvmlMemory_t v1 = {};
  ASSERT_EQ(call("nvmlDeviceGetMemoryInfo", device(0), &v1), NVML_SUCCESS);
  EXPECT_EQ(v1.total, v2.total);
  EXPECT_EQ(v1.used, v2.used + v2.reserved);
  EXPECT_EQ(v1.free, v2.free);
}

TEST_F(NvmlTest, ComputeMode) {
  Gpusimd driver("2xL4");
  init(driver.dir());
  int mode = -1;
  EXPECT_EQ(call("nvmlDeviceGetComputeMode", device(0), &mode), NVML_SUCCESS);
  EXPECT_EQ(mode, 0);
  EXPECT_EQ(call("nvmlDeviceSetComputeMode", device(0), 1), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(call("nvmlDeviceSetComputeMode", device(0), 4), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(call("nvmlDeviceSetComputeMode", device(0), 3), NVML_SUCCESS);
  EXPECT_EQ(call("nvmlDeviceGetComputeMode", device(0), &mode), NVML_SUCCESS);
  EXPECT_EQ(mode, 3);
  EXPECT_EQ(call("nvmlDeviceGetComputeMode", device(1), &mode), NVML_SUCCESS);
  EXPECT_EQ(mode, 0);
}

// Count protocol: 0 rows of room => 7 and the needed count.
TEST_F(NvmlTest, ProcessLists) {
  Gpusimd driver("1xL4");
  init(driver.dir());
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto shared = probe(mps.client("0=1024M"), {"init", "ctx", "alloc:500", "hold"});
  const auto plain = probe(driver.environment(), {"init", "ctx", "hold"});
  for (int i = 0; i < 4; ++i) shared->line();
  for (int i = 0; i < 3; ++i) plain->line();
  unsigned int count = 0;
  EXPECT_EQ(call("nvmlDeviceGetComputeRunningProcesses_v3", device(0), &count,
                 static_cast<nvmlProcessInfo_t*>(nullptr)),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  const auto compute = processes("nvmlDeviceGetComputeRunningProcesses_v3", device(0));
  ASSERT_EQ(compute.size(), 2u) << "the MPS server and the plain process";
  for (const nvmlProcessInfo_t& row : compute) {
    const bool is_server = std::to_string(row.pid) == server;
    EXPECT_TRUE(is_server || row.pid == static_cast<unsigned int>(plain->pid()));
    EXPECT_EQ(row.usedGpuMemory / kMiB, is_server ? 30u : 128u);
    EXPECT_EQ(row.gpuInstanceId, 0xFFFFFFFFu);
  }
  const auto clients = processes("nvmlDeviceGetMPSComputeRunningProcesses_v3", device(0));
  ASSERT_EQ(clients.size(), 1u);
  EXPECT_EQ(clients[0].pid, static_cast<unsigned int>(shared->pid())) << "host pids";
  EXPECT_EQ(clients[0].usedGpuMemory / kMiB, 628u);
}

// A device exists for a process when its device file does, as /dev/nvidia<N>.
TEST_F(NvmlTest, OnlyDevicesWithAFile) {
  Gpusimd driver("3xL4");
  const std::string uuid = driver.uuid(1);
  unlink((driver.dir() + "/devices/nvidia0").c_str());
  unlink((driver.dir() + "/devices/nvidia2").c_str());
  init(driver.dir());
  unsigned int count = 0;
  EXPECT_EQ(call("nvmlDeviceGetCount_v2", &count), NVML_SUCCESS);
  ASSERT_EQ(count, 1u);
  char text[96] = {};
  EXPECT_EQ(call("nvmlDeviceGetUUID", device(0), text, 96u), NVML_SUCCESS);
  EXPECT_EQ(uuid, text);
  unsigned int minor = 0;
  EXPECT_EQ(call("nvmlDeviceGetMinorNumber", device(0), &minor), NVML_SUCCESS);
  EXPECT_EQ(minor, 1u);
}

// An agent keeps NVML open for weeks.
TEST_F(NvmlTest, DriverRestart) {
  Gpusimd driver("1xL4");
  init(driver.dir());
  const nvmlDevice_t handle = device(0);
  int mode = -1;
  EXPECT_EQ(call("nvmlDeviceGetComputeMode", handle, &mode), NVML_SUCCESS);
  driver.process().kill(SIGKILL);
  driver.process().wait();
  EXPECT_EQ(call("nvmlDeviceGetComputeMode", handle, &mode), NVML_ERROR_UNKNOWN);
  driver.restart();
  EXPECT_EQ(call("nvmlDeviceGetComputeMode", handle, &mode), NVML_SUCCESS);
}

}  // namespace
}  // namespace gpusim::test
