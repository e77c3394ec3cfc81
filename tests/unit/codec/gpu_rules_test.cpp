#include "codec/gpu_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "base/limits.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using core::GpuRequest;
using core::NoGpu;
using core::SharedGpu;
using core::WholeGpus;

constexpr const char* kPath = "containerDefinitions[0].resourceRequirements";

TEST(GpuRulesTest, DecodesWhatIsRight) {
  struct Row {
    std::string requirements;
    GpuRequest want;
  };
  const Row rows[] = {
      {"[]", NoGpu{}},
      {R"([{"type":"GPU","value":"1"}])", WholeGpus{1, false}},
      {R"([{"type":"GPU","value":"007"}])", WholeGpus{7, false}},
      {R"([{"type":"GPU","value":"64"}])", WholeGpus{64, false}},
      {R"([{"type":"GPU","value":"ALL"}])", WholeGpus{0, true}},
      {R"([{"type":"GPU","value":"2","sharingStrategy":null}])", WholeGpus{2, false}},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":1}}}])", SharedGpu{1, {}}},
      {R"([{"type":"GPU","value":null,"sharingStrategy":{"nvidiaMps":{"memory":8000,"maxComputePercent":1}}}])",
       SharedGpu{8000, 1}},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":1073741824,"maxComputePercent":100}}}])",
       SharedGpu{base::limits::kGpuMemoryMibMax, 100}},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":5,"maxComputePercent":null}}}])",
       SharedGpu{5, {}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.requirements);
    const auto got = decode_gpu_request(*Json::parse(row.requirements), kPath);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(*got == row.want);
  }
}

TEST(GpuRulesTest, RefusesWithMemberRemedyAndPage) {
  struct Row {
    std::string requirements;
    ErrorCode code;
    std::string path;    // after kPath
    std::string remedy;  // somewhere in the message
    std::string page;
  };
  const std::string requirement_page = "API_ResourceRequirement.html";
  const std::string sharing_page = "API_SharingStrategy.html";
  const std::string mps_page = "API_NvidiaMpsAllocation.html";
  const std::string guide = "ecs-gpu-specifying.html";
  const Row rows[] = {
      {R"([{"type":"GPU"}])", ErrorCode::kInvalidParameter, "[0]: ", "give value",
       requirement_page},
      {R"([{"type":"GPU","value":"1","sharingStrategy":{"nvidiaMps":{"memory":1}}}])",
       ErrorCode::kInvalidParameter, "[0]: ", "not both", requirement_page},
      {R"([{"type":"GPU","value":"1"},{"type":"GPU","value":"1"}])", ErrorCode::kInvalidParameter,
       ": ", "merge them", requirement_page},
      {R"([{"type":"NeuronDevice","value":"ALL"}])", ErrorCode::kUnsupportedFeature,
       "[0].type: ", "use type GPU", requirement_page},
      {R"([{"type":"NeuronDevice","sharingStrategy":{"nvidiaMps":{"memory":1}}}])",
       ErrorCode::kInvalidParameter, "[0].sharingStrategy: ", "set type to GPU", sharing_page},
      {R"([{"type":"GPU","sharingStrategy":{}}])", ErrorCode::kInvalidParameter,
       "[0].sharingStrategy: ", "give nvidiaMps", sharing_page},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{}}}])", ErrorCode::kInvalidParameter,
       "[0].sharingStrategy.nvidiaMps.memory: ", "is required", mps_page},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":0}}}])",
       ErrorCode::kInvalidParameter, "[0].sharingStrategy.nvidiaMps.memory: ", "from 1", mps_page},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":1073741825}}}])",
       ErrorCode::kInvalidParameter, "[0].sharingStrategy.nvidiaMps.memory: ", "to 1073741824",
       mps_page},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":1,"maxComputePercent":0}}}])",
       ErrorCode::kInvalidParameter,
       "[0].sharingStrategy.nvidiaMps.maxComputePercent: ", "from 1 to 100", mps_page},
      {R"([{"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":1,"maxComputePercent":101}}}])",
       ErrorCode::kInvalidParameter,
       "[0].sharingStrategy.nvidiaMps.maxComputePercent: ", "from 1 to 100", mps_page},
      {R"([{"type":"GPU","value":"0"}])", ErrorCode::kInvalidParameter,
       "[0].value: ", "from 1 to 64", guide},
      {R"([{"type":"GPU","value":"65"}])", ErrorCode::kInvalidParameter,
       "[0].value: ", "from 1 to 64", guide},
      {R"([{"type":"GPU","value":"-1"}])", ErrorCode::kInvalidParameter,
       "[0].value: ", "sharingStrategy", guide},
      {R"([{"type":"GPU","value":" 1"}])", ErrorCode::kInvalidParameter, "[0].value: ", "' 1'",
       guide},
      {R"([{"type":"GPU","value":"abc"}])", ErrorCode::kInvalidParameter, "[0].value: ", "or ALL",
       guide},
      {R"([{"type":"GPU","value":"0.25"}])", ErrorCode::kUnsupportedFeature,
       "[0].value: ", "sharingStrategy.nvidiaMps.memory", guide},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.requirements);
    const auto got = decode_gpu_request(*Json::parse(row.requirements), kPath);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, row.code);
    const std::string& message = got.error().message;
    EXPECT_EQ(message.rfind(kPath + row.path, 0), 0U) << message;
    EXPECT_NE(message.find(row.remedy), std::string::npos) << message;
    EXPECT_NE(message.find("https://docs.aws.amazon.com/AmazonECS/latest/"), std::string::npos);
    EXPECT_NE(message.find(row.page + ")"), std::string::npos) << message;
  }
}

TEST(GpuRulesTest, OnlyErrorsAboutGpusGetAPage) {
  struct Row {
    std::string message;
    bool gets_page;
  };
  const Row rows[] = {
      {"containerDefinitions[0].resourceRequirements[0].value: must be", true},
      {"overrides.containerOverrides[0].resourceRequirements[0].type: must be", true},
      {"containerDefinitions[0].memory: must be at least 6", false},
      {"family: may not be resourceRequirements", false},
      {"family: x: resourceRequirements.value", false},
      {"no member at all", false},
  };
  for (const Row& row : rows) {
    const auto error = with_gpu_documentation({ErrorCode::kInvalidParameter, row.message});
    EXPECT_EQ(error.message != row.message, row.gets_page) << error.message;
    EXPECT_EQ(error.message.rfind(row.message, 0), 0U);
  }
}

core::ContainerDefinition container(const std::string& name, GpuRequest gpu) {
  core::ContainerDefinition container;
  container.name = name;
  container.gpu = gpu;
  return container;
}

TEST(GpuRulesTest, RulesOfATask) {
  struct Row {
    std::string name;
    std::vector<GpuRequest> gpus;
    core::NetworkMode network_mode;
    std::vector<std::string> compatibilities;
    std::string error;  // empty: none
  };
  const SharedGpu share{100, {}};
  const WholeGpus whole{1, false};
  const WholeGpus all{0, true};
  const auto bridge = core::NetworkMode::kBridge;
  const auto host = core::NetworkMode::kHost;
  const Row rows[] = {
      {"none", {NoGpu{}}, host, {"FARGATE"}, ""},
      {"shares", {share, NoGpu{}, share}, bridge, {"EC2", "MANAGED_INSTANCES"}, ""},
      {"wholes", {whole, whole}, host, {"EXTERNAL"}, ""},
      {"all and others without", {NoGpu{}, all}, host, {}, ""},
      {"mixed",
       {share, whole},
       bridge,
       {},
       "containerDefinitions[1].resourceRequirements[0]: container 'c0' shares"},
      {"mixed the other way",
       {whole, NoGpu{}, share},
       bridge,
       {},
       "containerDefinitions[2].resourceRequirements[0]: container 'c2' shares"},
      {"all is alone",
       {whole, all},
       bridge,
       {},
       "containerDefinitions[1].resourceRequirements[0].value: ALL"},
      {"all twice",
       {all, all},
       bridge,
       {},
       "containerDefinitions[0].resourceRequirements[0].value: ALL"},
      {"FARGATE",
       {share},
       bridge,
       {"EC2", "FARGATE"},
       "containerDefinitions[0].resourceRequirements[0].sharingStrategy: is not possible with "
       "requiresCompatibilities FARGATE"},
      {"EXTERNAL",
       {NoGpu{}, share},
       bridge,
       {"EXTERNAL"},
       "containerDefinitions[1].resourceRequirements[0].sharingStrategy: is not possible with "
       "requiresCompatibilities EXTERNAL"},
      {"the host's network",
       {share},
       host,
       {},
       "containerDefinitions[0].resourceRequirements[0].sharingStrategy: is not possible with "
       "networkMode host"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    core::TaskDefinition definition;
    definition.network_mode = row.network_mode;
    for (std::size_t i = 0; i < row.gpus.size(); ++i) {
      definition.containers.push_back(container("c" + std::to_string(i), row.gpus[i]));
    }
    const auto warnings = check_task_gpu_rules(definition, row.compatibilities);
    ASSERT_EQ(warnings.has_value(), row.error.empty());
    if (warnings) {
      EXPECT_TRUE(warnings->empty());
      continue;
    }
    EXPECT_EQ(warnings.error().code, ErrorCode::kInvalidParameter);
    EXPECT_EQ(warnings.error().message.rfind(row.error, 0), 0U) << warnings.error().message;
    EXPECT_NE(warnings.error().message.find("https://"), std::string::npos);
  }
}

TEST(GpuRulesTest, WarnsOfVariablesThatThePlatformSets) {
  core::TaskDefinition definition;
  definition.containers = {container("plain", NoGpu{}), container("shares", SharedGpu{1, {}})};
  for (core::ContainerDefinition& part : definition.containers) {
    part.environment = {{"CUDA_MPS_PIPE_DIRECTORY", "/x"}, {"MINE", "1"}};
  }
  const auto warnings = check_task_gpu_rules(definition, {});
  ASSERT_TRUE(warnings);
  ASSERT_EQ(warnings->size(), 1U);
  EXPECT_EQ((*warnings)[0].rfind("containerDefinitions[1].environment: CUDA_MPS_PIPE_DIRECTORY", 0),
            0U);
}

}  // namespace
}  // namespace cotenant::codec
