// libnvidia-ml.so.1, loaded as programs load it, and calls by name.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nvml/nvml_types.h"
#include "tests/harness.h"

namespace gpusim::test {

class NvmlFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(binary("libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override {
    while (call("nvmlShutdown") == NVML_SUCCESS) {
    }
    unsetenv("GPUSIM_DIR");
  }
  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    void* address = dlsym(library_, name);
    if (address == nullptr) {
      ADD_FAILURE() << "no symbol " << name;
      return -1;
    }
    return reinterpret_cast<int (*)(Arguments...)>(address)(arguments...);
  }
  void init(const std::string& dir) {
    setenv("GPUSIM_DIR", dir.c_str(), 1);
    ASSERT_EQ(call("nvmlInit_v2"), NVML_SUCCESS);
  }
  nvmlDevice_t device(unsigned int index) {
    nvmlDevice_t handle = nullptr;
    EXPECT_EQ(call("nvmlDeviceGetHandleByIndex_v2", index, &handle), NVML_SUCCESS);
    return handle;
  }
  std::vector<nvmlProcessInfo_t> processes(const char* name, nvmlDevice_t handle) {
    std::vector<nvmlProcessInfo_t> rows(64);
    auto count = static_cast<unsigned int>(rows.size());
    EXPECT_EQ(call(name, handle, &count, rows.data()), NVML_SUCCESS);
    rows.resize(count);
    return rows;
  }

  void* library_ = nullptr;
};

}  // namespace gpusim::test
