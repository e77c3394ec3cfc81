#include "driver/device_table.h"

#include <gtest/gtest.h>

namespace gpusim {
namespace {

TEST(DeviceTable, GpuSpec) {
  const struct {
    const char* spec;
    size_t count;  // 0: refused
    const char* error_names;
  } kCases[] = {
      {"2xL4", 2, ""},
      {"2XL4", 2, ""},
      {"1xh100,3xa10g", 4, ""},
      {"64xL4", 64, ""},
      {"65xL4", 0, "part '65xL4' exceeds the limit of 64"},
      {"60xL4,5xL4", 0, "part '5xL4' exceeds the limit of 64"},
      {"99999999999999999999xL4", 0, "part '99999999999999999999xL4'"},
      {"0xL4", 0, "part '0xL4'"},
      {"-1xL4", 0, "part '-1xL4'"},
      {"L4", 0, "part 'L4' has no 'x'"},
      {"2xB300", 0, "part '2xB300' names an unknown model"},
      {"2xL40", 0, "part '2xL40' names an unknown model"},
      {"2x", 0, "part '2x'"},
      {"2xL4,", 0, "part '' is empty"},
      {"2xL4,,1xL4", 0, "part ''"},
      {"", 0, "part ''"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.spec);
    const auto result = parse_gpu_spec(test.spec);
    if (test.count > 0) {
      ASSERT_TRUE(std::holds_alternative<std::vector<const GpuModel*>>(result));
      EXPECT_EQ(std::get<0>(result).size(), test.count);
    } else {
      ASSERT_TRUE(std::holds_alternative<std::string>(result));
      EXPECT_NE(std::get<1>(result).find(test.error_names), std::string::npos)
          << std::get<1>(result);
      EXPECT_NE(std::get<1>(result).find("known models: L4, A10G, H100"), std::string::npos);
    }
  }
}

// Stable across releases: stored ledgers name devices by UUID.
TEST(DeviceTable, UuidsAreStableAndDistinct) {
  EXPECT_EQ(device_uuid(1, 0), device_uuid(1, 0));
  EXPECT_EQ(device_uuid(1, 0), "GPU-e1264dd8-9c09-c327-80fa-a5ca48304d07");
  EXPECT_NE(device_uuid(1, 0), device_uuid(1, 1));
  EXPECT_NE(device_uuid(1, 0), device_uuid(2, 0));
  EXPECT_EQ(device_uuid(1, 0).size(), 40u);  // NVML: "GPU-8-4-4-4-12"
  EXPECT_EQ(default_seed("machine", "/a"), default_seed("machine", "/a"));
  EXPECT_NE(default_seed("machine", "/a"), default_seed("machine", "/b"));
  EXPECT_NE(default_seed("machine", "/a"), default_seed("other", "/a"));
}

// 23034 - 471 = 22563: the figures of the ECS agent's GPU memory report for a 24 GB card.
TEST(DeviceTable, L4Memory) {
  const auto models = std::get<0>(parse_gpu_spec("1xL4"));
  const DeviceInfo info = make_devices(models, 1).at(0);
  EXPECT_EQ(info.total_bytes / kMiB, 23034u);
  EXPECT_EQ((info.total_bytes - info.reserved_bytes) / kMiB, 22563u);
}

}  // namespace
}  // namespace gpusim
