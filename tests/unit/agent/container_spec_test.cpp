#include "agent/container_spec.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "agent/labels.h"
#include "fakes/fake_container_runtime.h"
#include "fakes/fake_gpu_wiring.h"
#include "fakes/fake_mps_control.h"

namespace cotenant::agent {
namespace {

constexpr const char* kSpecGpu = "GPU-1";

ContainerPlan plan() {
  ContainerPlan plan;
  plan.task_id = "task";
  plan.family = "family";
  plan.revision = 3;
  plan.container.id = "0123456789abcdef0123456789abcdef";
  plan.container.definition.name = "web";
  plan.container.definition.image = "image";
  return plan;
}

ContainerPlan sharing_plan(std::optional<int> percent = std::nullopt) {
  ContainerPlan sharing = plan();
  sharing.container.definition.gpu = core::SharedGpu{2048, percent};
  sharing.container.gpu_uuids = {kSpecGpu};
  return sharing;
}

class ContainerSpecTest : public testing::Test {
 protected:
  base::Result<BuiltSpec> build(const ContainerPlan& from) {
    return build_container_spec(from, "instance", engine_, wiring_, mps_);
  }
  ports::ContainerSpec spec(const ContainerPlan& from) {
    const auto built = build(from);
    EXPECT_TRUE(built);
    return built ? built->spec : ports::ContainerSpec{};
  }

  ports::EngineInfo engine_ = fakes::FakeContainerRuntime::default_info();
  fakes::FakeGpuWiring wiring_;
  fakes::FakeMpsControl mps_;
};

// Every value of the variable, in order.
std::vector<std::string> values(const ports::ContainerSpec& spec, const std::string& name) {
  std::vector<std::string> found;
  for (const ports::EnvironmentVariable& variable : spec.environment) {
    if (variable.name == name) found.push_back(variable.value);
  }
  return found;
}

using Values = std::vector<std::string>;

TEST_F(ContainerSpecTest, TakesOverTheDefinition) {
  ContainerPlan from = plan();
  core::ContainerDefinition& definition = from.container.definition;
  definition.cpu_units = 512;
  definition.memory_mib = 256;
  definition.memory_reservation_mib = 128;
  definition.entry_point = {"/entry"};
  definition.command = {"a", "b"};
  definition.working_directory = "/srv";
  definition.environment = {{"A", "1"}, {"B", "2"}, {"A", "3"}};
  from.network_mode = core::NetworkMode::kHost;
  const ports::ContainerSpec got = spec(from);
  EXPECT_EQ(got.name, "cotenant-family-3-web-0123456789ab");
  EXPECT_EQ(got.image, "image");
  EXPECT_EQ(got.cpu_units, 512);
  EXPECT_EQ(got.memory_mib, 256);
  EXPECT_EQ(got.memory_reservation_mib, 128);
  EXPECT_EQ(got.entry_point, Values{"/entry"});
  EXPECT_EQ(got.command, (Values{"a", "b"}));
  EXPECT_EQ(got.working_directory, "/srv");
  EXPECT_EQ(values(got, "A"), Values{"3"});
  EXPECT_EQ(values(got, "B"), Values{"2"});
  EXPECT_EQ(got.network_mode, ports::NetworkMode::kHost);
  EXPECT_TRUE(got.mounts.empty());
  EXPECT_EQ(values(got, "NVIDIA_VISIBLE_DEVICES"), Values{"void"});
  EXPECT_FALSE(got.labels.contains(kGpusLabel));
}

TEST_F(ContainerSpecTest, ThePlatformsLabelsWin) {
  ContainerPlan from = sharing_plan();
  from.container.definition.docker_labels = {{"team", "x"},
                                             {kInstanceLabel, "mine"},
                                             {kGpuModeLabel, kGpuModeWhole},
                                             {"cotenant.later", "y"}};
  const std::map<std::string, std::string> want = {
      {"team", "x"},
      {kInstanceLabel, "instance"},
      {kTaskLabel, "task"},
      {kContainerLabel, from.container.id},
      {kContainerNameLabel, "web"},
      {kGpusLabel, kSpecGpu},
      {kGpuModeLabel, kGpuModeMps},
  };
  EXPECT_EQ(spec(from).labels, want);
}

TEST_F(ContainerSpecTest, ASharingContainerGetsItsLimitsAndOnlyTheControlSocket) {
  ContainerPlan from = sharing_plan(40);
  from.container.definition.environment = {{"CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"},
                                           {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=99G"},
                                           {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100"}};
  const ports::ContainerSpec got = spec(from);
  EXPECT_EQ(values(got, "CUDA_MPS_PIPE_DIRECTORY"), Values{"/run/cotenant/mps"});
  EXPECT_EQ(values(got, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), Values{"0=2048M"});
  EXPECT_EQ(values(got, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), Values{"40"});
  EXPECT_EQ(values(got, "NVIDIA_VISIBLE_DEVICES"), Values{kSpecGpu});
  ASSERT_EQ(got.mounts.size(), 1u);
  EXPECT_EQ(got.mounts[0].source, "/run/fake/mps/GPU-1/control");
  EXPECT_EQ(got.mounts[0].target, "/run/cotenant/mps/control");
  EXPECT_TRUE(got.mounts[0].read_only) << "a tenant could chmod it and lock the others out";
}

TEST_F(ContainerSpecTest, WithoutAComputeLimitTheUsersOwnStays) {
  ContainerPlan from = sharing_plan();
  EXPECT_EQ(values(spec(from), "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), Values{});
  from.container.definition.environment = {{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "10"}};
  EXPECT_EQ(values(spec(from), "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), Values{"10"});
}

TEST_F(ContainerSpecTest, AWholeGpuContainerGetsNoMps) {
  ContainerPlan from = plan();
  from.container.definition.gpu = core::WholeGpus{2, false};
  from.container.gpu_uuids = {"GPU-1", "GPU-2"};
  const ports::ContainerSpec got = spec(from);
  EXPECT_EQ(values(got, "NVIDIA_VISIBLE_DEVICES"), Values{"GPU-1,GPU-2"});
  EXPECT_EQ(values(got, "CUDA_MPS_PIPE_DIRECTORY"), Values{});
  EXPECT_TRUE(got.mounts.empty());
  EXPECT_EQ(got.labels.at(kGpusLabel), "GPU-1,GPU-2");
  EXPECT_EQ(got.labels.at(kGpuModeLabel), kGpuModeWhole);
}

TEST_F(ContainerSpecTest, AnEngineWithoutABridgeGivesNoneAndSaysSo) {
  EXPECT_TRUE(build(plan())->warnings.empty());
  engine_.has_bridge = false;
  const auto built = build(plan());
  ASSERT_TRUE(built);
  EXPECT_EQ(built->spec.network_mode, ports::NetworkMode::kNone);
  ASSERT_EQ(built->warnings.size(), 1u);
  EXPECT_NE(built->warnings[0].find("networkMode bridge"), std::string::npos);
}

TEST_F(ContainerSpecTest, RefusesGpusThatDoNotFitTheRequest) {
  struct Row {
    core::GpuRequest request;
    std::vector<std::string> gpus;
    const char* want;
  };
  const Row rows[] = {
      {core::SharedGpu{1, std::nullopt}, {}, "needs exactly one GPU, but 0"},
      {core::SharedGpu{1, std::nullopt}, {"a", "b"}, "needs exactly one GPU, but 2"},
      {core::WholeGpus{2, false}, {"a"}, "needs 2 whole GPU(s), but 1"},
      {core::WholeGpus{0, true}, {}, "needs all GPUs of the instance, but 0"},
      {core::NoGpu{}, {"a"}, "needs no GPU, but 1"},
  };
  for (const Row& row : rows) {
    ContainerPlan from = plan();
    from.container.definition.gpu = row.request;
    from.container.gpu_uuids = row.gpus;
    const auto built = build(from);
    ASSERT_FALSE(built) << row.want;
    EXPECT_EQ(built.error().code, base::ErrorCode::kClient);
    EXPECT_NE(built.error().message.find(row.want), std::string::npos) << built.error().message;
  }
}

TEST_F(ContainerSpecTest, AMachineThatCannotWireIsARefusalOfTheContainer) {
  wiring_.set_error(base::Error{base::ErrorCode::kUnavailable, "install the toolkit"});
  const auto built = build(sharing_plan());
  ASSERT_FALSE(built);
  // kUnavailable would be taken for an engine that is away, and tried for ever.
  EXPECT_EQ(built.error().code, base::ErrorCode::kClient);
  EXPECT_EQ(built.error().message, "install the toolkit");
}

TEST_F(ContainerSpecTest, NamesOfLongFamiliesStayUnique) {
  ContainerPlan from = plan();
  from.family = std::string(255, 'f');
  from.container.definition.name = std::string(255, 'n');
  const std::string name = engine_name(from.family, from.revision, from.container);
  EXPECT_LT(name.size(), 160u);
  EXPECT_TRUE(name.ends_with("-0123456789ab"));
}

}  // namespace
}  // namespace cotenant::agent
