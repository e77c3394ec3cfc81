#include "cli/installation.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace cotenant::cli {
namespace {

namespace fs = std::filesystem;

class InstallationTest : public testing::Test {
 protected:
  InstallationTest() {
    char path[] = "/tmp/cotenant-installation-XXXXXX";
    folder_ = ::mkdtemp(path);
  }
  ~InstallationTest() override { fs::remove_all(folder_); }

  Installation installation() const {
    Installation here;
    here.data_dir = folder_ + "/data/deep";
    here.run_dir = folder_ + "/run";
    here.docker_host = "unix:///x.sock";
    here.simulate_gpus = "2xL4";
    here.nvml_library = "libnvidia-ml.so.1";
    here.mps_control = "/usr/bin/nvidia-cuda-mps-control";
    here.cdi_dir = "/etc/cdi";
    return here;
  }

  std::string folder_;
};

TEST_F(InstallationTest, TheDefaultDataFolderHasTheDefaultRunFolder) {
  EXPECT_EQ(default_run_dir("/var/lib/cotenant"), "/run/cotenant");
}

TEST_F(InstallationTest, OtherDataFoldersHaveRunFoldersOfTheirOwn) {
  std::set<std::string> seen;
  for (const char* data_dir : {"/var/lib/cotenant2", "/srv/a", "/srv/b", "/home/me/cotenant"}) {
    const std::string run_dir = default_run_dir(data_dir);
    EXPECT_EQ(run_dir, default_run_dir(data_dir)) << "the same again: `down` must find it";
    EXPECT_TRUE(seen.insert(run_dir).second);
    const std::string start = "/run/cotenant-";
    ASSERT_EQ(run_dir.rfind(start, 0), 0U);
    const std::string digits = run_dir.substr(start.size());
    EXPECT_EQ(digits.size(), 8U);
    EXPECT_TRUE(std::all_of(digits.begin(), digits.end(),
                            [](unsigned char c) { return std::isxdigit(c) != 0; }));
  }
}

TEST_F(InstallationTest, SpellingsOfAPathAreOneInstallation) {
  EXPECT_EQ(absolute_path("/var/lib/cotenant/"), "/var/lib/cotenant");
  EXPECT_EQ(absolute_path("/var/lib/./x/../cotenant"), "/var/lib/cotenant");
  EXPECT_EQ(absolute_path("/var//lib/cotenant//"), "/var/lib/cotenant");
  EXPECT_EQ(absolute_path("/"), "/");
  EXPECT_EQ(absolute_path("data"), (fs::current_path() / "data").string());
}

TEST_F(InstallationTest, FoldersAreMadeWithTheirModes) {
  ASSERT_TRUE(make_folders(installation()));
  struct stat status {};
  ASSERT_EQ(::stat((folder_ + "/data/deep").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U) << "it holds the database";
  ASSERT_EQ(::stat((folder_ + "/run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755U) << "MPS clients of other users pass through it";
  EXPECT_TRUE(make_folders(installation())) << "there already";
}

TEST_F(InstallationTest, AFileInTheWayIsNamed) {
  std::ofstream(folder_ + "/run") << "x";
  const auto status = make_folders(installation());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ErrorCode::kIo);
  EXPECT_EQ(status.error().message.rfind(folder_ + "/run: ", 0), 0U) << status.error().message;
}

TEST_F(InstallationTest, WhatWasRememberedComesBack) {
  const Installation here = installation();
  ASSERT_TRUE(make_folders(here));
  ASSERT_TRUE(write_node_file(here, Role::kUp));
  const auto read = read_node_file(here.data_dir, Role::kUp);
  ASSERT_TRUE(read) << read.error().message;
  const std::optional<Installation>& back = *read;
  ASSERT_TRUE(back);
  EXPECT_EQ(back->data_dir, here.data_dir);
  EXPECT_EQ(back->run_dir, here.run_dir);
  EXPECT_EQ(back->docker_host, here.docker_host);
  EXPECT_EQ(back->simulate_gpus, here.simulate_gpus);
  EXPECT_EQ(back->nvml_library, here.nvml_library);
  EXPECT_EQ(back->mps_control, here.mps_control);
  EXPECT_EQ(back->cdi_dir, here.cdi_dir);
}

TEST_F(InstallationTest, EachRoleHasARecordOfItsOwn) {
  Installation here = installation();
  ASSERT_TRUE(make_folders(here));
  ASSERT_TRUE(write_node_file(here, Role::kServer));
  here.run_dir = folder_ + "/other";
  ASSERT_TRUE(write_node_file(here, Role::kAgent));
  EXPECT_EQ((*read_node_file(here.data_dir, Role::kServer))->run_dir, folder_ + "/run");
  EXPECT_EQ((*read_node_file(here.data_dir, Role::kAgent))->run_dir, folder_ + "/other");
  EXPECT_FALSE(read_node_file(here.data_dir, Role::kUp)->has_value());
  remove_node_file(here.data_dir, Role::kServer);
  EXPECT_FALSE(read_node_file(here.data_dir, Role::kServer)->has_value());
}

TEST_F(InstallationTest, NothingThereIsNothingAndDamageIsAnError) {
  const auto nothing = read_node_file(folder_, Role::kUp);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
  for (const char* text : {"", "{", "[]", "5"}) {
    std::ofstream(folder_ + "/node-up.json", std::ios::trunc) << text;
    const auto damaged = read_node_file(folder_, Role::kUp);
    ASSERT_FALSE(damaged) << text;
    EXPECT_EQ(damaged.error().code, base::ErrorCode::kIo);
    EXPECT_EQ(damaged.error().message.rfind(folder_ + "/node-up.json: ", 0), 0U);
  }
}

}  // namespace
}  // namespace cotenant::cli
