#include "codec/registration_json.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(RegistrationJsonTest, RegistrationsComeBackAsTheyWere) {
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

TEST(RegistrationJsonTest, DamagedRegistrations) {
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
      {"memoryMib", "null", "memoryMib: "},
      {"reservedPorts", "[0]", "reservedPorts[0]: "},
      {"reservedPorts", "[65536]", "reservedPorts[0]: "},
      {"reservedPorts", R"(["22"])", "reservedPorts[0]: "},
      {"gpus", R"([{"clientSlots":1}])", "gpus[0].uuid: "},
      {"gpus", R"([{"uuid":"a","clientSlots":1},{"uuid":"b","memoryMib":0}])",
       "gpus[1].memoryMib: "},
      {"gpus", R"([{"uuid":"a","memoryMib":1073741825}])", "gpus[0].memoryMib: "},
      {"gpus", R"([{"uuid":"a","memoryMib":"1"}])", "gpus[0].memoryMib: "},
      {"gpus", R"([{"uuid":"a","clientSlots":-1}])", "gpus[0].clientSlots: "},
      {"gpus", R"([{"uuid":"a","clientSlots":4097}])", "gpus[0].clientSlots: "},
      {"gpus", R"([{"uuid":"a","clientSlots":4294967297}])", "gpus[0].clientSlots: "},
      {"gpus", R"([{"uuid":"a","clientSlots":1},{"uuid":"a","clientSlots":1}])",
       "gpus[1].uuid: 'a' is there twice"},
      {"gpus", "[5]", "gpus[0]: "},
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

TEST(RegistrationJsonTest, AnInstanceHasABoundedNumberOfGpus) {
  core::InstanceRegistration registration = full_registration();
  registration.gpus.clear();
  for (std::size_t i = 0; i < base::limits::kGpusPerInstance; ++i) {
    registration.gpus.push_back({"GPU-" + std::to_string(i), "m", 1, 1});
  }
  EXPECT_TRUE(decode_registration(encode_registration(registration)));
  registration.gpus.push_back({"one too many", "m", 1, 1});
  const auto back = decode_registration(encode_registration(registration));
  ASSERT_FALSE(back);
  EXPECT_NE(back.error().message.find("gpus: has 65 elements; at most 64"), std::string::npos);
}

TEST(RegistrationJsonTest, AnInstanceHasBoundedAttributes) {
  core::InstanceRegistration registration = full_registration();
  registration.attributes.clear();
  for (std::size_t i = 0; i < base::limits::kAttributesPerInstance; ++i) {
    registration.attributes["a" + std::to_string(i)] =
        std::string(base::limits::kAttributeChars, 'x');
  }
  EXPECT_TRUE(decode_registration(encode_registration(registration)));
  core::InstanceRegistration longer = registration;
  longer.attributes["a0"] += "x";
  auto back = decode_registration(encode_registration(longer));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message, "attributes[\"a0\"]: names and values have at most 512 bytes");
  registration.attributes["one"] = "too many";
  back = decode_registration(encode_registration(registration));
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().message, "attributes: has 257 members; at most 256 are allowed");
}

}  // namespace
}  // namespace cotenant::codec
