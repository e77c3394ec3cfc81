#include "agent/registry_config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/base64.h"

namespace cotenant::agent {
namespace {

TEST(RegistryConfig, FindsTheRegistryOfAnImage) {
  struct Row {
    const char* image;
    const char* want;
  };
  for (const Row& row :
       {Row{"busybox", "docker.io"}, Row{"team/model:1", "docker.io"},
        Row{"docker.io/team/model", "docker.io"}, Row{"index.docker.io/library/x", "docker.io"},
        Row{"localhost/x", "localhost"}, Row{"reg:5000/x:1", "reg:5000"},
        Row{"reg.example/x@sha256:0", "reg.example"},
        Row{"127.0.0.1:5000/a/b", "127.0.0.1:5000"}}) {
    EXPECT_EQ(registry_of(row.image), row.want) << row.image;
  }
}

TEST(RegistryConfig, ReadsWhatDockerLoginWrites) {
  const auto config = RegistryConfig::parse(R"({
    "auths": {
      "https://index.docker.io/v1/": {"auth": "aHViOnNlY3JldDp3aXRoOmNvbG9ucw=="},
      "reg:5000": {"auth": "bWU6cGFzcw"},
      "http://plain.example/v2/": {"username": "u", "password": "p"},
      "token.example": {"identitytoken": "tok"},
      "helped.example": {}
    },
    "credsStore": "desktop",
    "HttpHeaders": {"User-Agent": "Docker-Client"}
  })");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_TRUE(config->find("busybox"));
  EXPECT_EQ(config->find("busybox")->username, "hub");
  EXPECT_EQ(config->find("busybox")->password, "secret:with:colons");
  EXPECT_EQ(config->find("reg:5000/x")->username, "me");
  EXPECT_EQ(config->find("reg:5000/x")->server, "reg:5000");
  EXPECT_EQ(config->find("plain.example/x")->password, "p");
  EXPECT_EQ(config->find("token.example/x:1")->identity_token, "tok");
  EXPECT_FALSE(config->find("helped.example/x"));
  EXPECT_FALSE(config->find("reg:5001/x"));
  ASSERT_EQ(config->warnings().size(), 1u);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "credsStore", config->warnings()[0]);
}

TEST(RegistryConfig, SaysWhatIsWrong) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row :
       {Row{"[]", "an object"}, Row{"{", "byte"}, Row{R"({"auths":7})", "auths: must be an object"},
        Row{R"({"auths":{"r":7}})", "auths[\"r\"]: must be an object"},
        Row{R"({"auths":{"r":{"auth":"!!"}}})", "auths[\"r\"].auth: must be base64"},
        Row{R"({"auths":{"r":{"auth":"bWU="}}})", "auths[\"r\"].auth: must be base64"}}) {
    const auto config = RegistryConfig::parse(row.text);
    ASSERT_FALSE(config) << row.text;
    EXPECT_PRED_FORMAT2(testing::IsSubstring, row.want, config.error().message);
  }
  EXPECT_TRUE(RegistryConfig::parse("{}"));
  EXPECT_TRUE(RegistryConfig::read(""));
  EXPECT_TRUE(RegistryConfig::read("/nonexistent/config.json"));
  const std::string path = testing::TempDir() + "/registry_config_test.json";
  std::ofstream(path) << "{]";
  const auto damaged = RegistryConfig::read(path);
  ASSERT_FALSE(damaged);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, path, damaged.error().message);
}

TEST(Base64, GoesThereAndBack) {
  struct Row {
    std::string bytes;
    const char* url;
  };
  for (const Row& row : {Row{"", ""}, Row{"f", "Zg=="}, Row{"fo", "Zm8="}, Row{"foo", "Zm9v"},
                         Row{"foob", "Zm9vYg=="}, Row{"\xff\xfe\xfd", "__79"}}) {
    EXPECT_EQ(base::base64url_encode(row.bytes), row.url);
  }
  EXPECT_EQ(base::base64_decode("Zm9vYg=="), "foob");
  EXPECT_EQ(base::base64_decode("Zm9vYg"), "foob");
  EXPECT_EQ(base::base64_decode("//79"), "\xff\xfe\xfd");
  EXPECT_EQ(base::base64_decode(""), "");
  for (const char* bad : {"Z", "Zm9vY", "Zm 9", "__79", "Zg==Zg"}) {
    EXPECT_FALSE(base::base64_decode(bad)) << bad;
  }
}

}  // namespace
}  // namespace cotenant::agent
