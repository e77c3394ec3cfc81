#include "adapters/cdi_registry.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cotenant::adapters {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;

class CdiRegistryTest : public testing::Test {
 protected:
  CdiRegistryTest() {
    std::string name = testing::TempDir() + "cdi-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~CdiRegistryTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  void write_devices(const std::string& name, const std::string& kind, const std::string& devices,
                     const std::string& common = "") const {
    write(name, fmt::format("cdiVersion: 0.5.0\nkind: {}\ndevices: [{}]\ncontainerEdits: {{{}}}\n",
                            kind, devices, common));
  }
  CdiRegistry load() const {
    auto registry = CdiRegistry::load(folder_.string());
    EXPECT_TRUE(registry) << registry.error().message;
    return registry ? *registry : CdiRegistry();
  }

  fs::path folder_;
};

std::string text_of(const CdiEdits& edits) {
  std::string text;
  for (const auto& variable : edits.environment) text += variable.name + "=" + variable.value + " ";
  return text;
}

TEST_F(CdiRegistryTest, MergesInCdisOrder) {
  write_devices("a.yaml", "nvidia.com/gpu",
                "{name: g0, containerEdits: {env: [D=0, X=g0]}},"
                "{name: g1, containerEdits: {env: [E=1, X=g1]}}",
                "env: [C=1, X=common]");
  write_devices("b.json", "nvidia.com/gpu", "{name: g2, containerEdits: {env: [F=2]}}",
                "env: [C=2]");
  write_devices("c.yml", "other.com/gpu", "{name: g9, containerEdits: {env: [Z=9]}}");
  write("ignored.txt", "no spec");
  const CdiRegistry registry = load();
  EXPECT_TRUE(registry.problems().empty());
  struct Case {
    std::vector<std::string> names;
    const char* want;
  };
  for (const Case& c : {
           Case{{"g0"}, "C=1 D=0 X=g0 "},            // the device's own wins
           Case{{"g0", "g1"}, "C=1 D=0 E=1 X=g1 "},  // the common ones come once, first
           Case{{"g1", "g0"}, "C=1 E=1 D=0 X=g0 "},
           Case{{"g0", "g2"}, "D=0 X=g0 C=2 F=2 "},
           Case{{"g0", "g0"}, "C=1 D=0 X=g0 "},
           Case{{}, ""},
       }) {
    const auto edits = registry.resolve("nvidia.com/gpu", c.names);
    ASSERT_TRUE(edits) << edits.error().message;
    EXPECT_EQ(text_of(*edits), c.want);
  }
}

TEST_F(CdiRegistryTest, AnUnknownDeviceNamesThoseThatThereAre) {
  write_devices("a.yaml", "nvidia.com/gpu",
                "{name: g0, containerEdits: {}}, {name: g1, containerEdits: {}}");
  write("bad.yaml", "cdiVersion: 9.9.9");
  const CdiRegistry registry = load();
  const auto edits = registry.resolve("nvidia.com/gpu", {"g0", "g7"});
  ASSERT_FALSE(edits);
  EXPECT_EQ(edits.error().code, ErrorCode::kNotFound);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "no CDI device nvidia.com/gpu=g7; there are: g0, g1",
                      edits.error().message);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "bad.yaml: cdiVersion: 9.9.9 is newer",
                      edits.error().message);
  const auto other = registry.resolve("amd.com/gpu", {"g0"});
  ASSERT_FALSE(other);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "there is none of that kind", other.error().message);
}

TEST_F(CdiRegistryTest, ABadFileDoesNotHideTheOthers) {
  write_devices("good.yaml", "nvidia.com/gpu", "{name: g0, containerEdits: {}}");
  write("bad.yaml", "{");
  ASSERT_EQ(::mkfifo((folder_ / "fifo.yaml").c_str(), 0600), 0);  // reading it would never end
  fs::create_symlink(folder_ / "nowhere", folder_ / "dangling.json");
  const CdiRegistry registry = load();
  EXPECT_EQ(registry.problems().size(), 3U);
  EXPECT_TRUE(registry.resolve("nvidia.com/gpu", {"g0"}));
}

TEST_F(CdiRegistryTest, TwoFilesMayNotDefineTheSameDevice) {
  write_devices("a.yaml", "nvidia.com/gpu", "{name: g0, containerEdits: {}}");
  write_devices("b.yaml", "nvidia.com/gpu",
                "{name: g0, containerEdits: {}}, {name: g1, containerEdits: {}}");
  const CdiRegistry registry = load();
  const auto edits = registry.resolve("nvidia.com/gpu", {"g0"});
  ASSERT_FALSE(edits);
  EXPECT_EQ(edits.error().code, ErrorCode::kConflict);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "b.yaml", edits.error().message);
  EXPECT_TRUE(registry.resolve("nvidia.com/gpu", {"g1"}));
}

TEST_F(CdiRegistryTest, TheFoldersStateIsAnError) {
  const auto missing = CdiRegistry::load((folder_ / "none").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  write("file", "");
  const auto file = CdiRegistry::load((folder_ / "file").string());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kIo);
  for (std::size_t i = 0; i <= CdiRegistry::kFilesMax; ++i) write(fmt::format("{}.yaml", i), "");
  const auto many = CdiRegistry::load(folder_.string());
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, ErrorCode::kLimitExceeded);
}

}  // namespace
}  // namespace cotenant::adapters
