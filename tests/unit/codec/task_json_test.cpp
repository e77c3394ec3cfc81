#include "codec/task_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/limits.h"

namespace cotenant::codec {
namespace {

TEST(TaskJsonTest, OverridesComeBackAsTheyWere) {
  core::ContainerOverride files{"environment files", {}, {}};
  files.environment_files = {"/etc/a.env", "/etc/b.env"};
  core::ContainerOverride no_files{"no environment files", {}, {}};
  no_files.environment_files.emplace();
  const std::vector<core::ContainerOverride> overrides = {
      files,
      no_files,
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
