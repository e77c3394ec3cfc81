#include "codec/task_definition_reader.h"

#include <gtest/gtest.h>

#include "codec/ecs_request.h"
#include "codec/record.h"

namespace cotenant::codec {
namespace {

Json parsed(const std::string& text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

// What today's rules refuse, and a version with looser ones may have stored.
TEST(TaskDefinitionReaderTest, AStoredDefinitionLoadsWhateverTheRulesSay) {
  const std::string documents[] = {
      R"({"family":"f","containerDefinitions":[{"name":"c","image":"i"}]})",
      R"({"family":"f","containerDefinitions":[{"name":"c","image":"i","memory":1}]})",
      R"({"family":"f","networkMode":"carrier-pigeon",
          "containerDefinitions":[{"name":"c","image":"i","memory":64}]})",
      R"({"family":"f","containerDefinitions":[{"name":"c","image":"i","memory":64,"secrets":[{}]}]})",
      R"({"family":"f","containerDefinitions":[{"name":"c","image":"a b","memory":64,
          "essential":false,"stopTimeout":"soon"}]})",
      R"({"family":"f","containerDefinitions":[{"name":"c","image":"i","memory":64,
          "resourceRequirements":[{"type":"GPU","value":"1000"}]}]})",
      R"({"family":"f","containerDefinitions":[{"name":"c","image":"i","memory":64,
          "portMappings":[{"containerPort":0}],"dependsOn":[{"containerName":"nobody"}]}]})",
  };
  for (const std::string& document : documents) {
    SCOPED_TRACE(document);
    const auto read = read_stored_definition(document);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->family, "f");
    EXPECT_EQ(read->containers.size(), 1U);
    EXPECT_EQ(read->document, document);
    ASSERT_EQ(read->warnings.size(), 1U);
    EXPECT_EQ(read->warnings[0].rfind("registered before a rule that this version has", 0), 0U);
  }
}

TEST(TaskDefinitionReaderTest, ARequestForGpusIsNeverLost) {
  struct Case {
    std::string requirement;
    std::optional<core::GpuRequest> want;  // nothing: unreadable
  };
  const Case cases[] = {
      {R"({"type":"GPU","value":"2"})", core::WholeGpus{2, false}},
      {R"({"type":"GPU","value":"5000"})", core::WholeGpus{5000, false}},
      {R"({"type":"GPU","value":"ALL"})", core::WholeGpus{0, true}},
      {R"({"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":7}}})",
       core::SharedGpu{7, std::nullopt}},
      {R"({"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":7,"maxComputePercent":9}}})",
       core::SharedGpu{7, 9}},
      {R"({"type":"GPU","sharingStrategy":{"unheardOf":{"memory":7}}})", std::nullopt},
      {R"({"type":"GPU","sharingStrategy":{"nvidiaMps":{"memory":"7"}}})", std::nullopt},
      {R"({"type":"GPU","value":"0.25"})", std::nullopt},
      {R"({"type":"GPU","value":"none"})", std::nullopt},
      {R"({"type":"GPU"})", std::nullopt},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.requirement);
    const auto read = read_stored_definition(
        R"({"family":"f","containerDefinitions":[{"name":"c","image":"i","memory":64,)"
        R"("resourceRequirements":[)" +
        test.requirement + "]}]}");
    ASSERT_EQ(read.has_value(), test.want.has_value());
    if (read) {
      EXPECT_EQ(read->containers[0].gpu, *test.want);
    } else {
      EXPECT_EQ(
          read.error().message,
          "document: containerDefinitions[0].resourceRequirements[0]: is no request for a GPU");
    }
  }
}

TEST(TaskDefinitionReaderTest, WhatTheCoreRestsOnMustBeThere) {
  struct Case {
    std::string document;
    std::string error;
  };
  const Case cases[] = {
      {"{", "document: "},
      {"[]", "document: family: is not a name"},
      {R"({"family":"f"})", "document: containerDefinitions: has no container"},
      {R"({"family":"f","containerDefinitions":[{"image":"i"}]})",
       "document: containerDefinitions[0].name: is not a name"},
      {R"({"family":"f","containerDefinitions":[{"name":"c"},{"name":"c"}]})",
       "document: containerDefinitions[1].name: 'c' stands twice"},
      {R"({"family":"f","containerDefinitions":[
           {"name":"c","resourceRequirements":[{"value":"1"}]},
           {"name":"d","resourceRequirements":[{"sharingStrategy":{"nvidiaMps":{"memory":1}}}]}]})",
       "document: containerDefinitions: asks for a share of a GPU and for whole GPUs"},
  };
  for (const Case& test : cases) {
    const auto read = read_stored_definition(test.document);
    ASSERT_FALSE(read) << test.document;
    EXPECT_EQ(read.error().code, base::ErrorCode::kProtocol);
    EXPECT_EQ(read.error().message.rfind(test.error, 0), 0U) << read.error().message;
  }
}

TEST(TaskDefinitionReaderTest, RegistrationAndStoreReadAlike) {
  const std::string document =
      R"({"family":"f","networkMode":"none","runtimePlatform":{"cpuArchitecture":"ARM64"},
          "containerDefinitions":[{"name":"c","image":"i","cpu":7,"memory":64,
          "environment":[{"name":"A","value":"1"}],"dockerLabels":{"k":"v"},"stopTimeout":3}]})";
  const auto registered = decode_register_task_definition(parsed(document));
  ASSERT_TRUE(registered);
  const core::TaskDefinition& fresh = registered->value.definition;
  const auto stored = read_stored_definition(fresh.document);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->warnings, fresh.warnings);
  EXPECT_EQ(stored->network_mode, fresh.network_mode);
  EXPECT_EQ(stored->document, fresh.document);
  EXPECT_EQ(stored->containers[0].environment, fresh.containers[0].environment);
  EXPECT_EQ(stored->containers[0].docker_labels, fresh.containers[0].docker_labels);
  EXPECT_EQ(stored->containers[0].stop_timeout_s, 3);
  EXPECT_EQ(stored->containers[0].cpu_units, 7);
}

}  // namespace
}  // namespace cotenant::codec
