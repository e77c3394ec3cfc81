#include "agent/environment_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/limits.h"

namespace cotenant::agent {
namespace {

TEST(EnvironmentFileTest, Lines) {
  const auto got = parse_environment_file(
      "# a comment\nA=1\nB=x=y \"z\"\r\nempty=\n\nno equals\n=no name\nA=2\nlast=$HOME");
  const std::vector<core::EnvironmentVariable> want = {
      {"A", "1"}, {"B", "x=y \"z\""}, {"empty", ""}, {"last", "$HOME"}};
  EXPECT_EQ(got, want);
}

TEST(EnvironmentFileTest, FilesThatCannotBeRead) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "environment_file_test";
  std::filesystem::create_directories(folder);
  const std::string path = folder / "a.env";
  EXPECT_FALSE(read_environment_file(path));
  EXPECT_FALSE(read_environment_file(folder));
  std::ofstream(path) << "A=1\n";
  const auto read = read_environment_file(path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), 1U);
  std::ofstream(path) << std::string(base::limits::kEnvironmentFileBytes + 1, 'x');
  const auto large = read_environment_file(path);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, base::ErrorCode::kClient);
  EXPECT_NE(large.error().message.find(path + ": has more than 65536 bytes"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cotenant::agent
