// The two libraries must load in any glibc image: what they need, and what they export.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/harness.h"

namespace gpusim::test {
namespace {

TEST(Libraries, NeedOnlyAnOldGlibc) {
  for (const char* name : {"libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1"}) {
    const std::string content = read_file(binary(name));
    ASSERT_FALSE(content.empty());
    const std::regex version("GLIBC_2\\.([0-9]+)");
    for (std::sregex_iterator at(content.begin(), content.end(), version), end; at != end; ++at) {
      EXPECT_LE(std::stoi((*at)[1]), 17) << name << " needs " << at->str();
    }
    EXPECT_EQ(content.find("GLIBCXX_"), std::string::npos) << name << " needs libstdc++";
    EXPECT_EQ(content.find("libstdc++.so"), std::string::npos) << name;
  }
}

// The functions by which programs use NVML: the names behind nvml.h's macros (NVML.H).
TEST(Libraries, NvmlExports) {
  void* library = dlopen(binary("libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const char* name : {"nvmlInit_v2",
                           "nvmlShutdown",
                           "nvmlErrorString",
                           "nvmlSystemGetDriverVersion",
                           "nvmlSystemGetNVMLVersion",
                           "nvmlSystemGetCudaDriverVersion_v2",
                           "nvmlDeviceGetCount_v2",
                           "nvmlDeviceGetHandleByIndex_v2",
                           "nvmlDeviceGetHandleByUUID",
                           "nvmlDeviceGetHandleByPciBusId_v2",
                           "nvmlDeviceGetName",
                           "nvmlDeviceGetUUID",
                           "nvmlDeviceGetIndex",
                           "nvmlDeviceGetMinorNumber",
                           "nvmlDeviceGetPciInfo_v3",
                           "nvmlDeviceGetMemoryInfo",
                           "nvmlDeviceGetMemoryInfo_v2",
                           "nvmlDeviceGetComputeMode",
                           "nvmlDeviceSetComputeMode",
                           "nvmlDeviceGetCudaComputeCapability",
                           "nvmlDeviceGetArchitecture",
                           "nvmlDeviceGetMigMode",
                           "nvmlDeviceGetUtilizationRates",
                           "nvmlDeviceGetComputeRunningProcesses_v3",
                           "nvmlDeviceGetMPSComputeRunningProcesses_v3",
                           "nvmlDeviceGetRunningProcessDetailList",
                           "nvmlEventSetCreate",
                           "nvmlDeviceGetSupportedEventTypes",
                           "nvmlDeviceRegisterEvents",
                           "nvmlEventSetWait_v2",
                           "nvmlEventSetFree",
                           "nvmlDeviceSetMemoryLimits_v1",
                           "nvmlDeviceGetMemoryLimits_v1"}) {
    EXPECT_NE(dlsym(library, name), nullptr) << name;
  }
}

// The entry points that a program that uses memory needs of the driver API.
TEST(Libraries, CudaExports) {
  void* library = dlopen(binary("libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  for (const char* name : {"cuGetProcAddress_v2",
                           "cuDriverGetVersion",
                           "cuInit",
                           "cuDeviceGetCount",
                           "cuDeviceGet",
                           "cuDeviceGetName",
                           "cuDeviceTotalMem_v2",
                           "cuDeviceGetAttribute",
                           "cuDeviceGetUuid",
                           "cuDeviceGetUuid_v2",
                           "cuDeviceGetByPCIBusId",
                           "cuDeviceGetPCIBusId",
                           "cuDevicePrimaryCtxRetain",
                           "cuDevicePrimaryCtxRelease_v2",
                           "cuDevicePrimaryCtxReset_v2",
                           "cuDevicePrimaryCtxGetState",
                           "cuCtxCreate",
                           "cuCtxCreate_v2",
                           "cuCtxCreate_v4",
                           "cuCtxDestroy_v2",
                           "cuCtxGetCurrent",
                           "cuCtxSetCurrent",
                           "cuCtxPushCurrent_v2",
                           "cuCtxPopCurrent_v2",
                           "cuCtxSynchronize",
                           "cuCtxGetDevice",
                           "cuMemGetInfo_v2",
                           "cuMemAlloc_v2",
                           "cuMemAllocPitch_v2",
                           "cuMemAllocManaged",
                           "cuMemAllocAsync",
                           "cuMemHostAlloc",
                           "cuMemAllocHost_v2",
                           "cuMemFree_v2",
                           "cuMemFreeAsync",
                           "cuMemFreeHost",
                           "cuMemcpy",
                           "cuMemcpyHtoD_v2",
                           "cuMemcpyDtoH_v2",
                           "cuMemcpyDtoD_v2",
                           "cuMemsetD8_v2",
                           "cuMemsetD32_v2",
                           "cuPointerGetAttribute",
                           "cuPointerGetAttributes",
                           "cuModuleLoadData",
                           "cuModuleLoadDataEx",
                           "cuModuleGetFunction",
                           "cuModuleUnload",
                           "cuLibraryLoadData",
                           "cuLibraryGetKernel",
                           "cuLaunchKernel",
                           "cuStreamCreate",
                           "cuStreamDestroy_v2",
                           "cuStreamSynchronize",
                           "cuStreamQuery",
                           "cuEventCreate",
                           "cuEventDestroy_v2",
                           "cuEventRecord",
                           "cuEventSynchronize",
                           "cuEventElapsedTime",
                           "cuGetErrorName",
                           "cuGetErrorString",
                           "cuGetExportTable"}) {
    EXPECT_NE(dlsym(library, name), nullptr) << name;
  }
}

}  // namespace
}  // namespace gpusim::test
