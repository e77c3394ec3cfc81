#include "base/private_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace cotenant::base {
namespace {

class PrivateFileTest : public testing::Test {
 protected:
  PrivateFileTest() { std::filesystem::create_directories(folder_); }
  ~PrivateFileTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "cotenant-private-" + std::to_string(::getpid());
  const std::string path_ = folder_ + "/secret";
};

TEST_F(PrivateFileTest, WhatIsWrittenIsReadAndIsTheOwnersOnly) {
  auto text = read_private_file(path_);
  ASSERT_TRUE(text);
  EXPECT_FALSE(*text) << "no file is no error";
  for (const std::string& written : {std::string("first"), std::string(100000, 'x')}) {
    ASSERT_TRUE(write_private_file(path_, written));
    text = read_private_file(path_);
    ASSERT_TRUE(text) << text.error().message;
    EXPECT_EQ(**text, written);
    struct stat file {};
    ASSERT_EQ(::stat(path_.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777u, 0600u);
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(PrivateFileTest, ALeftoverIsReplacedNotFollowed) {
  const std::string other = folder_ + "/other";
  { std::ofstream(other) << "kept"; }
  std::filesystem::create_symlink(other, path_ + ".new");
  ASSERT_TRUE(write_private_file(path_, "secret"));
  std::string kept;
  std::ifstream(other) >> kept;
  EXPECT_EQ(kept, "kept");
}

TEST_F(PrivateFileTest, RefusesWithTheRemedy) {
  ASSERT_TRUE(write_private_file(path_, "secret"));
  for (const mode_t mode : {0644u, 0640u, 0602u, 0610u}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    const auto text = read_private_file(path_);
    ASSERT_FALSE(text) << mode;
    EXPECT_NE(text.error().message.find("chmod 600"), std::string::npos) << text.error().message;
    EXPECT_TRUE(read_private_file(path_, Privacy::kAny)) << mode;
  }
  const auto folder = read_private_file(folder_);
  ASSERT_FALSE(folder);
  EXPECT_NE(folder.error().message.find("not a plain file"), std::string::npos);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(read_private_file(pipe)) << "must not wait for a writer";
  { std::ofstream(path_) << std::string(1100000, 'x'); }
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  const auto large = read_private_file(path_);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("more than"), std::string::npos);
  EXPECT_FALSE(write_private_file(folder_ + "/absent/secret", "x"));
}

}  // namespace
}  // namespace cotenant::base
