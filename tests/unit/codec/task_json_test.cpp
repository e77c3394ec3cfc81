#include "codec/task_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"

namespace cotenant::codec {
namespace {

core::InstanceRegistration full_registration() {
  core::InstanceRegistration registration;
  registration.id = "i1";
  registration.cluster = "default";
  registration.cpu_units = 4096;
  registration.memory_mib = 16384;
  registration.reserved_ports = {22, 65535};
  registration.gpus = {{"GPU-a", "NVIDIA L4", 23034, 48}, {"GPU-b", "unreadable", {}, 0}};
  registration.attributes = {{"ecs.capability.gpu-sharing-mps", ""}, {"zone", "a \"b\""}};
  registration.agent_version = "1.2.3";
  registration.engine_version = "20.10";
  registration.driver_version = "550.54";
  registration.gpu_simulated = true;
  return registration;
}

TEST(TaskJsonTest, RegistrationsComeBackAsTheyWere) {
  core::InstanceRegistration bare;
  bare.id = "x";
  bare.cluster = "c";
  for (const core::InstanceRegistration& registration : {full_registration(), bare}) {
    const auto text = Json::parse(encode_registration(registration).dump());
    ASSERT_TRUE(text);
    const auto back = decode_registration(*text);
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_TRUE(*back == registration);
  }
}

TEST(TaskJsonTest, DamagedRegistrations) {
  struct Row {
    std::string member;
    std::string value;
    std::string want;
  };
  const Row rows[] = {
      {"id", R"("")", "id: "},
      {"id", R"("a b")", "id: "},
      {"id", "5", "id: "},
      {"cluster", R"("a/b")", "cluster: "},
      {"cpuUnits", "-1", "cpuUnits: "},
      {"cpuUnits", R"("4096")", "cpuUnits: "},
      {"memoryMiB", "null", "memoryMiB: "},
      {"reservedPorts", "[0]", "reservedPorts: "},
      {"reservedPorts", "[65536]", "reservedPorts: "},
      {"reservedPorts", R"(["22"])", "reservedPorts: "},
      {"gpus", R"([{}])", "gpus[0].uuid: "},
      {"gpus", R"([{"uuid":"a"},{"uuid":"b","memoryMiB":0}])", "gpus[1].memoryMiB: "},
      {"gpus", R"([{"uuid":"a","memoryMiB":1073741825}])", "gpus[0].memoryMiB: "},
      {"gpus", R"([{"uuid":"a","memoryMiB":"1"}])", "gpus[0].memoryMiB: "},
      {"gpus", R"([{"uuid":"a","clientSlots":-1}])", "gpus[0].clientSlots: "},
      {"gpus", R"([{"uuid":"a","clientSlots":4097}])", "gpus[0].clientSlots: "},
      {"gpus", R"([{"uuid":"a","clientSlots":4294967297}])", "gpus[0].clientSlots: "},
      {"gpus", R"([{"uuid":"a"},{"uuid":"a"}])", "gpus: names a GPU twice: a"},
      {"gpus", "[5]", "gpus[0].uuid: "},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.member + " = " + row.value);
    Json json = encode_registration(full_registration());
    json.set(row.member, *Json::parse(row.value));
    const auto back = decode_registration(json);
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, base::ErrorCode::kProtocol);
    EXPECT_EQ(back.error().message.rfind(row.want, 0), 0U) << back.error().message;
  }
}

TEST(TaskJsonTest, AnInstanceHasABoundedNumberOfGpus) {
  core::InstanceRegistration registration = full_registration();
  registration.gpus.clear();
  for (std::size_t i = 0; i < base::limits::kGpusPerInstance; ++i) {
    registration.gpus.push_back({"GPU-" + std::to_string(i), "m", 1, 1});
  }
  EXPECT_TRUE(decode_registration(encode_registration(registration)));
  registration.gpus.push_back({"one too many", "m", 1, 1});
  const auto back = decode_registration(encode_registration(registration));
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message.find("65 GPUs, more than 64"), std::string::npos);
}

TEST(TaskJsonTest, OverridesComeBackAsTheyWere) {
  const std::vector<core::ContainerOverride> overrides = {
      {"nothing", {}, {}},
      {"command", std::vector<std::string>{"a", ""}, {}},
      {"an empty command", std::vector<std::string>{}, {}},
      {"environment", {}, {{"A", "1"}, {"B", ""}}},
  };
  const auto text = Json::parse(encode_overrides(overrides).dump());
  ASSERT_TRUE(text);
  const auto back = decode_overrides(text->as_array());
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, overrides);

  const auto damaged = decode_overrides(Json::parse(R"([{"command":["x"]}])")->as_array());
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, base::ErrorCode::kProtocol);
}

}  // namespace
}  // namespace cotenant::codec
