// NvmlDriver against the simulated driver's libnvidia-ml.so.1.
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../unit/adapters/temp_folder.h"
#include "adapters/mps_directory.h"
#include "adapters/nvml_driver.h"
#include "gpusim_process.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

class NvmlTest : public testing::Test {
 protected:
  std::string library() const { return gpusim_bin() + "/libnvidia-ml.so.1"; }

  TempFolder folder_;
};

TEST_F(NvmlTest, ReadsTheDriverAndItsGpus) {
  GpusimProcess gpusim(folder_.path() + "/gpusim", "2xL4,1xH100");
  ASSERT_NO_FATAL_FAILURE(gpusim.start());
  NvmlDriver driver(library());
  const auto info = driver.driver();
  ASSERT_TRUE(info.has_value()) << info.error().message;
  EXPECT_TRUE(info->simulated);
  EXPECT_EQ(info->version, "580.95.05");
  EXPECT_EQ(info->cuda_version, 13000);

  const auto gpus = driver.gpus();
  ASSERT_TRUE(gpus.has_value()) << gpus.error().message;
  const struct {
    const char* model;
    int compute_major;
    int compute_minor;
    std::int64_t memory_mib;
  } want[] = {
      {"NVIDIA L4", 8, 9, 22563},
      {"NVIDIA L4", 8, 9, 22563},
      {"NVIDIA H100 80GB HBM3", 9, 0, 81008},
  };
  ASSERT_EQ(gpus->size(), std::size(want));
  std::set<std::string> uuids;
  std::set<std::string> bus_ids;
  for (std::size_t i = 0; i < gpus->size(); ++i) {
    SCOPED_TRACE(i);
    const ports::GpuInfo& gpu = (*gpus)[i];
    EXPECT_EQ(gpu.index, static_cast<int>(i));
    EXPECT_EQ(gpu.model, want[i].model);
    EXPECT_EQ(gpu.compute_capability_major, want[i].compute_major);
    EXPECT_EQ(gpu.compute_capability_minor, want[i].compute_minor);
    EXPECT_EQ(gpu.memory_mib, want[i].memory_mib);
    EXPECT_FALSE(gpu.is_vgpu);
    EXPECT_FALSE(gpu.mig_enabled);
    EXPECT_TRUE(is_gpu_uuid(gpu.uuid)) << gpu.uuid;
    EXPECT_EQ(gpu.pci_bus_id.size(), 16U) << gpu.pci_bus_id;
    uuids.insert(gpu.uuid);
    bus_ids.insert(gpu.pci_bus_id);
  }
  EXPECT_EQ(uuids.size(), gpus->size());
  EXPECT_EQ(bus_ids.size(), gpus->size());

  const auto uses = driver.memory_use();
  ASSERT_TRUE(uses.has_value()) << uses.error().message;
  ASSERT_EQ(uses->size(), gpus->size());
  for (std::size_t i = 0; i < uses->size(); ++i) {
    EXPECT_EQ((*uses)[i].uuid, (*gpus)[i].uuid);
    EXPECT_EQ((*uses)[i].used_mib, 0);
  }
}

// No driver, then one, then none, then another one: the same object follows.
TEST_F(NvmlTest, FollowsTheDriverThroughItsRestarts) {
  GpusimProcess gpusim(folder_.path() + "/gpusim", "1xA10G");
  NvmlDriver driver(library());
  for (int round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    const auto absent = driver.gpus();
    ASSERT_FALSE(absent.has_value());
    EXPECT_EQ(absent.error().code, ErrorCode::kUnavailable) << absent.error().message;
    EXPECT_NE(absent.error().message.find("driver is not loaded"), std::string::npos)
        << absent.error().message;

    ASSERT_NO_FATAL_FAILURE(gpusim.start());
    const auto gpus = driver.gpus();
    ASSERT_TRUE(gpus.has_value()) << gpus.error().message;
    EXPECT_EQ(gpus->size(), 1U);
    gpusim.stop();
  }
  // Other GPUs behind the same folder, while the object believes to be connected.
  ASSERT_NO_FATAL_FAILURE(gpusim.start());
  ASSERT_TRUE(driver.gpus().has_value());
  gpusim.stop();
  GpusimProcess next(folder_.path() + "/gpusim", "2xL4", "2");
  ASSERT_NO_FATAL_FAILURE(next.start());
  const auto gpus = driver.gpus();
  ASSERT_TRUE(gpus.has_value()) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 2U);
  EXPECT_EQ(gpus->front().model, "NVIDIA L4");
}

TEST_F(NvmlTest, SeveralObjectsAndThreads) {
  GpusimProcess gpusim(folder_.path() + "/gpusim", "4xL4");
  ASSERT_NO_FATAL_FAILURE(gpusim.start());
  NvmlDriver driver(library());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      NvmlDriver own(library());
      for (NvmlDriver* each : {&driver, &own}) {
        const auto gpus = each->gpus();
        EXPECT_TRUE(gpus.has_value() && gpus->size() == 4);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(driver.driver().has_value()) << "another object's end leaves this one working";
}

}  // namespace
}  // namespace cotenant::adapters
