#include "adapters/process_gpu_wiring.h"

#include <gtest/gtest.h>

#include <fstream>

#include "unit/adapters/temp_folder.h"

namespace cotenant::adapters {
namespace {

std::string wired_variable(const ports::ContainerSpec& spec, const std::string& name) {
  for (const ports::EnvironmentVariable& variable : spec.environment) {
    if (variable.name == name) return variable.value;
  }
  return "(none)";
}

TEST(ProcessGpuWiringTest, WithoutGpusNoneIsSeen) {
  ports::ContainerSpec spec;
  spec.environment = {{"CUDA_VISIBLE_DEVICES", "0"}, {"NVIDIA_VISIBLE_DEVICES", "all"}};
  ASSERT_TRUE(ProcessGpuWiring("/no/such/folder").wire({}, {}, spec));
  EXPECT_EQ(wired_variable(spec, "CUDA_VISIBLE_DEVICES"), "-1");
  EXPECT_EQ(wired_variable(spec, "NVIDIA_VISIBLE_DEVICES"), "void");
  EXPECT_EQ(spec.environment.size(), 2U);
}

TEST(ProcessGpuWiringTest, TheDriverOfTheMachineNeedsNoSpec) {
  const TempFolder empty;
  for (const std::string& folder : {std::string(), std::string("/no/such/folder"), empty.path()}) {
    ports::ContainerSpec spec;
    ASSERT_TRUE(ProcessGpuWiring(folder).wire({}, {"GPU-1", "GPU-2"}, spec)) << folder;
    EXPECT_EQ(wired_variable(spec, "CUDA_VISIBLE_DEVICES"), "GPU-1,GPU-2");
    EXPECT_TRUE(spec.mounts.empty());
  }
}

TEST(ProcessGpuWiringTest, ASpecGivesItsVariablesAndMounts) {
  const TempFolder folder;
  std::ofstream(folder.path() + "/gpu.yaml")
      << "cdiVersion: \"0.5.0\"\nkind: nvidia.com/gpu\ndevices:\n  - name: GPU-1\n"
         "    containerEdits:\n      mounts:\n"
         "        - {hostPath: /sim/devices/0, containerPath: /run/sim/devices/0}\n"
         "containerEdits:\n  env: [\"SIM=/run/sim\", \"NVIDIA_VISIBLE_DEVICES=void\"]\n"
         "  hooks:\n    - {hookName: createContainer, path: /bin/true}\n";
  ports::ContainerSpec spec;
  ASSERT_TRUE(ProcessGpuWiring(folder.path()).wire({}, {"GPU-1"}, spec));
  EXPECT_EQ(wired_variable(spec, "SIM"), "/run/sim");
  EXPECT_EQ(wired_variable(spec, "NVIDIA_VISIBLE_DEVICES"), "GPU-1");
  EXPECT_EQ(wired_variable(spec, "CUDA_VISIBLE_DEVICES"), "GPU-1");
  ASSERT_EQ(spec.mounts.size(), 1U);
  EXPECT_FALSE(spec.mounts[0].make_source) << "the platform's";

  // Two files that contradict each other are not chosen from.
  std::filesystem::copy_file(folder.path() + "/gpu.yaml", folder.path() + "/again.yaml");
  const base::Status refused = ProcessGpuWiring(folder.path()).wire({}, {"GPU-1"}, spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace cotenant::adapters
