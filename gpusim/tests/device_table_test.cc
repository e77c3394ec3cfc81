#include "driver/device_table.h"

#include <gtest/gtest.h>

#include <fstream>

#include "common/driver_versions.h"
#include "driver/fleet_file.h"
#include "tests/harness.h"

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
      {"1xT4,1xL40S,1xA100-40,1xA100-80,1xH200,1xB200", 6, ""},
      {"2xL4-6Q,1xl4-24q", 0, "part '1xl4-24q' is a vGPU with more memory"},
      {"2xL4-6Q,1xA10G-8C", 3, ""},
      {"1xL4-Q", 0, "part '1xL4-Q' names an unknown model"},
      {"1xL4-0Q", 0, "part '1xL4-0Q' names an unknown model"},
      {"1xA100-40:3g.20gb+1g.5gb", 1, ""},
      {"1xH100:1G.10GB", 1, ""},
      {"1xL4:1g.5gb", 0, "part '1xL4:1g.5gb' has no MIG"},
      {"1xH100:1g.5gb", 0, "unknown MIG profile '1g.5gb'; known: 1g.10gb, 2g.20gb"},
      {"1xH100:", 0, "has no MIG profile behind its ':'"},
      {"1xH100:4g.40gb+4g.40gb", 0, "more MIG devices than the GPU has slices"},
      {"9xH100:1g.10gb+1g.10gb+1g.10gb+1g.10gb+1g.10gb+1g.10gb+1g.10gb", 0, "limit of 64"},
      {"", 0, "part ''"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.spec);
    const auto result = parse_gpu_spec(test.spec);
    if (test.count > 0) {
      ASSERT_TRUE(std::holds_alternative<std::vector<GpuSpec>>(result));
      EXPECT_EQ(std::get<0>(result).size(), test.count);
    } else {
      ASSERT_TRUE(std::holds_alternative<std::string>(result));
      EXPECT_NE(std::get<1>(result).find(test.error_names), std::string::npos)
          << std::get<1>(result);
      EXPECT_NE(
          std::get<1>(result).find(
              "known models: P4, V100, T4, A10G, L4, L40S, A100-40, A100-80, H100, H200, B200"),
          std::string::npos);
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

// The model table: memory as nvidia-smi shows it; compute capability and architecture as NVIDIA's
// list of GPUs and NVML.H (Turing 6, Ampere 7, Ada 8, Hopper 9, Blackwell 10) have them.
TEST(DeviceTable, Models) {
  const struct {
    const char* model;
    const char* name;
    uint64_t total_mib;
    uint32_t cc;
    uint32_t architecture;
    uint32_t sm_count;
    uint32_t pci_device;
  } kCases[] = {
      {"T4", "Tesla T4", 15360, 75, 6, 40, 0x1EB8},
      {"A10G", "NVIDIA A10G", 23028, 86, 7, 80, 0x2237},
      {"L4", "NVIDIA L4", 23034, 89, 8, 58, 0x27B8},
      {"L40S", "NVIDIA L40S", 46068, 89, 8, 142, 0x26B9},
      {"A100-40", "NVIDIA A100-SXM4-40GB", 40960, 80, 7, 108, 0x20B0},
      {"A100-80", "NVIDIA A100-SXM4-80GB", 81920, 80, 7, 108, 0x20B2},
      {"H100", "NVIDIA H100 80GB HBM3", 81559, 90, 9, 132, 0x2330},
      {"H200", "NVIDIA H200", 143771, 90, 9, 132, 0x2335},
      {"B200", "NVIDIA B200", 183359, 100, 10, 148, 0x2901},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.model);
    const auto gpus = std::get<0>(parse_gpu_spec(std::string("1x") + test.model));
    const DeviceInfo info = make_devices(gpus, 1).at(0);
    EXPECT_STREQ(info.name, test.name);
    EXPECT_EQ(info.total_bytes / kMiB, test.total_mib);
    EXPECT_GT(info.reserved_bytes, 0u);
    EXPECT_LT(info.reserved_bytes, info.total_bytes / 20);
    EXPECT_EQ(info.cc_major * 10 + info.cc_minor, test.cc);
    EXPECT_EQ(info.nvml_architecture, test.architecture);
    EXPECT_EQ(info.sm_count, test.sm_count);
    EXPECT_EQ(info.pci_device_id >> 16, test.pci_device);
    EXPECT_EQ(info.pci_device_id & 0xFFFF, 0x10DEu);
    EXPECT_EQ(info.client_slots, 48u) << "CUDA 13.0";
  }
}

// Client contexts a device: 16 before Volta, 48 up to CUDA 13.0, 60 from the CUDA 13.1 documentation
// on (MPS/when-to-use-mps).
TEST(DeviceTable, ClientSlots) {
  EXPECT_EQ(mps_client_slots(6, 13000), 16u);
  EXPECT_EQ(mps_client_slots(6, 13040), 16u);
  EXPECT_EQ(mps_client_slots(7, 11040), 48u);
  EXPECT_EQ(mps_client_slots(9, 13000), 48u);
  EXPECT_EQ(mps_client_slots(9, 13010), 60u);
}

TEST(DeviceTable, MigDevicesAndVgpus) {
  const auto devices =
      make_devices(std::get<0>(parse_gpu_spec("1xA100-40:3g.20gb+1g.5gb,1xL4-6Q")), 1);
  ASSERT_EQ(devices.size(), 4u) << "GPUs first, then MIG devices";
  EXPECT_EQ(devices[0].mig_enabled, 1u);
  EXPECT_EQ(devices[1].kind, DeviceKind::kVgpu);
  EXPECT_STREQ(devices[1].name, "NVIDIA L4-6Q");
  EXPECT_EQ(devices[1].total_bytes / kMiB, 6144u);
  EXPECT_EQ(devices[2].kind, DeviceKind::kMig);
  EXPECT_EQ(devices[2].parent, 0u);
  EXPECT_STREQ(devices[2].name, "NVIDIA A100-SXM4-40GB MIG 3g.20gb");
  EXPECT_EQ(std::string(devices[2].uuid).substr(0, 4), "MIG-");
  EXPECT_EQ(devices[2].sm_count, 39u);
  EXPECT_GT(devices[2].total_bytes, devices[3].total_bytes * 3);
  EXPECT_EQ(devices[3].gpu_instance_id, 2u);
  EXPECT_STREQ(devices[3].device_file, "nvidia0-gi2ci0");
}

TEST(DeviceTable, AnotherGenerationIsAnotherGpu) {
  EXPECT_NE(device_uuid(1, 0, 1), device_uuid(1, 0));
  EXPECT_NE(device_uuid(1, 0, 1), device_uuid(1, 0, 2));
  EXPECT_NE(device_uuid(1, 0, 1), device_uuid(1, 1, 1));
}

// CUDA version by driver release (NVIDIA's table of driver and toolkit releases).
TEST(DriverVersions, Find) {
  const struct {
    const char* text;
    const char* version;  // nullptr: refused
    int cuda;
  } kCases[] = {
      {"470", "470.256.02-gpusim", 11040},
      {"535", "535.261.03-gpusim", 12020},
      {"550", "550.163.01-gpusim", 12040},
      {"580", "580.95.05-gpusim", 13000},
      {"590", "590.44.01-gpusim", 13010},
      {"615", "615.71.09-gpusim", 13040},
      {"580.126.20", "580.126.20-gpusim", 13000},
      {"560.35.03", "560.35.03-gpusim", 12040},
      {"620.10", "620.10-gpusim", 13040},
      {"560", nullptr, 0},
      {"390.87", nullptr, 0},
      {"", nullptr, 0},
      {"x", nullptr, 0},
      {"580.", nullptr, 0},
      {"580.1.2.3", nullptr, 0},
      {"5800000", nullptr, 0},
  };
  for (const auto& test : kCases) {
    DriverInfo info;
    const bool found = find_driver_version(test.text, &info);
    EXPECT_EQ(found, test.version != nullptr) << test.text;
    if (!found || test.version == nullptr) continue;
    EXPECT_STREQ(info.driver_version, test.version);
    EXPECT_EQ(info.cuda_version, test.cuda) << test.text;
    // Seen on 615.71.09 only: DYN, "an entry for a device it cannot see".
    EXPECT_EQ((info.behaviours & kCraftedLimitDropsAll) != 0, test.cuda >= 13040) << test.text;
  }
}

TEST(FleetFile, ReadsAndRefuses) {
  const struct {
    const char* text;
    size_t gpus;  // 0: refused
    const char* error_names;
  } kCases[] = {
      {R"({"driver": "615", "seed": 7, "gpus": [{"model": "L4", "count": 2}]})", 2, ""},
      {R"({"gpus": [{"model": "A100-40", "mig": ["3g.20gb", "1g.5gb"]}, {"model": "L4-6Q"}]})", 2,
       ""},
      {R"({"gpus": [{"model": "H100", "memory_mib": 40000, "reserved_mib": 500, "context_mib": 0}]})",
       1, ""},
      {R"({"gpus": [{"model": "L4", "uuid": "GPU-01234567-89ab-cdef-0123-456789abcdef"}]})", 1, ""},
      {R"({"gpus": []})", 0, "gpus: is not a list of GPUs"},
      {R"({})", 0, "gpus: is not a list"},
      {R"([])", 0, "fleet: is not an object"},
      {R"({"gpus": [{"model": "RTX"}]})", 0, "gpus[0].model: 'RTX' names an unknown model"},
      {R"({"gpus": [{}]})", 0, "gpus[0].model: is missing"},
      {R"({"gpus": [{"model": "L4", "count": 0}]})", 0,
       "gpus[0].count: is not a whole number from 1"},
      {R"({"gpus": [{"model": "L4", "count": -1}]})", 0, "gpus[0].count"},
      {R"({"gpus": [{"model": "L4", "count": 65}]})", 0, "gpus[0].count"},
      {R"({"gpus": [{"model": "L4", "count": 40}, {"model": "L4", "count": 40}]})", 0,
       "gpus[1]: exceeds the limit of 64"},
      {R"({"gpus": [{"model": "L4", "colour": 1}]})", 0, "gpus[0].colour: is unknown"},
      {R"({"gpus": [{"model": "L4", "model": "T4"}]})", 0, "gpus[0].model: is there twice"},
      {R"({"gpus": [{"model": "L4", "memory_mib": 2000, "reserved_mib": 1500}]})", 0,
       "gpus[0].reserved_mib"},
      {R"({"gpus": [{"model": "L4", "uuid": "GPU-1"}]})", 0, "gpus[0].uuid: is not of the form"},
      {R"({"gpus": [{"model": "L4", "count": 2, "uuid": "GPU-01234567-89ab-cdef-0123-456789abcdef"}]})",
       0, "gpus[0].uuid: is for one GPU"},
      {R"({"gpus": [{"model": "L4", "mig": ["1g.5gb"]}]})", 0, "has no MIG"},
      {R"({"gpus": [{"model": "L4"})", 0, "line "},
      {"\x01\x02", 0, "--file"},
  };
  test::TempDir folder;
  const std::string path = folder / "fleet.json";
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.text);
    std::ofstream(path) << test.text;
    const auto result = read_fleet_file(path);
    if (test.gpus > 0) {
      ASSERT_TRUE(std::holds_alternative<Fleet>(result)) << std::get<1>(result);
      EXPECT_EQ(std::get<0>(result).gpus.size(), test.gpus);
    } else {
      ASSERT_TRUE(std::holds_alternative<std::string>(result));
      EXPECT_NE(std::get<1>(result).find(test.error_names), std::string::npos)
          << std::get<1>(result);
    }
  }
  EXPECT_NE(std::get<1>(read_fleet_file("/nowhere/fleet.json")).find("cannot be read"),
            std::string::npos);
}

}  // namespace
}  // namespace gpusim
