#include "cli/credentials_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/agent_key.h"
#include "cli/client_endpoint.h"
#include "cli/installation.h"

namespace cotenant::cli {
namespace {

class CredentialsFileTest : public testing::Test {
 protected:
  CredentialsFileTest() { std::filesystem::create_directories(folder_); }
  ~CredentialsFileTest() override {
    for (const char* name : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE", "AWS_ACCESS_KEY_ID",
                             "AWS_SECRET_ACCESS_KEY", "COTENANT_ENDPOINT"}) {
      ::unsetenv(name);
    }
    std::filesystem::remove_all(folder_);
  }
  void put(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0600);
  }

  const std::string folder_ =
      testing::TempDir() + "cotenant-credentials-" + std::to_string(::getpid());
  const std::string path_ = credentials_path(folder_);
};

std::string profile_text(const std::string& name, const std::string& id) {
  return "[" + name + "]\naws_access_key_id = " + id +
         "\naws_secret_access_key = 0123456789abcdef0123\n";
}

TEST_F(CredentialsFileTest, IsMadeOnceAndThenKept) {
  const auto made = load_or_create_credentials(path_, "eu-west-1");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->size(), 1u);
  const CredentialProfile& profile = made->at("default");
  EXPECT_EQ(profile.credentials.access_key_id.size(), 20u);
  EXPECT_EQ(profile.credentials.access_key_id.find("AKCT"), 0u);
  EXPECT_EQ(profile.credentials.secret_access_key.size(), 40u);
  EXPECT_EQ(profile.region, "eu-west-1");
  struct stat file {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777u, 0600u);

  const auto again = load_or_create_credentials(path_, "us-east-1");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->at("default").credentials.secret_access_key,
            profile.credentials.secret_access_key);
  std::filesystem::remove(path_);
  const auto anew = load_or_create_credentials(path_, "us-east-1");
  ASSERT_TRUE(anew);
  EXPECT_NE(anew->at("default").credentials.secret_access_key,
            profile.credentials.secret_access_key);
}

TEST_F(CredentialsFileTest, WhatAdministratorsWriteIsRead) {
  const auto parsed = parse_credentials(
      "f", "# comment\r\n; comment\n\n[ default ]\naws_access_key_id=AKIDAKIDAKIDAKID\r\n" +
               std::string("aws_secret_access_key\t=  0123456789abcdef0123=/+  \n") +
               "unknown = kept by others\n" + profile_text("next", "AKIDNEXTAKIDNEXT"));
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 2u);
  EXPECT_EQ(parsed->at("default").credentials.access_key_id, "AKIDAKIDAKIDAKID");
  EXPECT_EQ(parsed->at("default").credentials.secret_access_key, "0123456789abcdef0123=/+");
  EXPECT_EQ(parsed->at("next").credentials.access_key_id, "AKIDNEXTAKIDNEXT");
}

TEST_F(CredentialsFileTest, BrokenOnesAreRefusedAndStay) {
  const struct {
    std::string text;
    std::string want;
  } rows[] = {
      {"", "holds no profile"},
      {"\n# nothing\n", "holds no profile"},
      {"aws_access_key_id = x\n", "line 1: want [profile] first"},
      {"[default\n", "line 1: want [profile]"},
      {"[]\n", "line 1: want [profile]"},
      {"[default]\nnonsense\n", "line 2: want name = value"},
      {"[default]\n", "profile [default] has no aws_access_key_id"},
      {"[default]\naws_access_key_id = AKIDAKIDAKIDAKID\n", "has no aws_secret_access_key"},
      {profile_text("default", "short"), "16 to 128"},
      {profile_text("default", "AKIDAKID/AKIDAKID"), "16 to 128"},
      {"[default]\naws_access_key_id = AKIDAKIDAKIDAKID\naws_secret_access_key = x\n", "16 to 256"},
      {profile_text("a", "AKIDAKIDAKIDAKID") + "[a]\n", "line 4: profile [a] comes twice"},
  };
  for (const auto& row : rows) {
    put(path_, row.text);
    const auto loaded = load_or_create_credentials(path_, "us-east-1");
    ASSERT_FALSE(loaded) << row.want;
    EXPECT_NE(loaded.error().message.find(row.want), std::string::npos) << loaded.error().message;
    EXPECT_EQ(loaded.error().message.find(path_), 0u) << loaded.error().message;
    EXPECT_EQ(std::filesystem::file_size(path_), row.text.size());
  }
}

TEST_F(CredentialsFileTest, OthersMayNotReadTheServersFile) {
  ASSERT_TRUE(load_or_create_credentials(path_, "us-east-1"));
  ::chmod(path_.c_str(), 0644);
  const auto loaded = load_or_create_credentials(path_, "us-east-1");
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("chmod 600"), std::string::npos);
  EXPECT_TRUE(load_credentials(path_)) << "a client's copy is its user's affair";
  EXPECT_FALSE(load_or_create_credentials(folder_ + "/absent/credentials", "us-east-1"));
}

TEST_F(CredentialsFileTest, WhereAClientLooks) {
  ClientOptions options;
  options.data_dir = folder_;
  EXPECT_FALSE(find_signer(options).value()) << "nothing anywhere";
  ::setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT0", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  const auto key = [&] { return find_signer(options).value()->credentials.access_key_id; };
  EXPECT_EQ(key(), "AKIDENVIRONMENT0");
  put(path_, profile_text("default", "AKIDDATAFOLDER00") + "region = eu-west-1\n");
  EXPECT_EQ(key(), "AKIDDATAFOLDER00");
  EXPECT_EQ(find_signer(options).value()->region, "eu-west-1");
  put(folder_ + "/shared", profile_text("default", "AKIDSHAREDFILE00"));
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", (folder_ + "/shared").c_str(), 1);
  EXPECT_EQ(key(), "AKIDSHAREDFILE00");
  EXPECT_EQ(find_signer(options).value()->region, "us-east-1");
  put(folder_ + "/option",
      profile_text("default", "AKIDOPTION000000") + profile_text("other", "AKIDOTHER0000000"));
  options.credentials = folder_ + "/option";
  EXPECT_EQ(key(), "AKIDOPTION000000");
  ::setenv("AWS_PROFILE", "other", 1);
  EXPECT_EQ(key(), "AKIDOTHER0000000");
  options.region = "ap-south-1";
  EXPECT_EQ(find_signer(options).value()->region, "ap-south-1");
  ::setenv("AWS_PROFILE", "absent", 1);
  EXPECT_FALSE(find_signer(options));
  options.credentials = folder_ + "/absent";
  EXPECT_FALSE(find_signer(options)) << "a file that was named must be there";
}

TEST_F(CredentialsFileTest, TheEndpointIsThisMachinesWhereThereIsOne) {
  ClientOptions options;
  options.data_dir = folder_;
  EXPECT_EQ(find_endpoint(options), "http://127.0.0.1:8484");
  Installation installation;
  installation.data_dir = folder_;
  installation.run_dir = folder_;
  ASSERT_TRUE(write_node_file(installation, Role::kUp));
  EXPECT_EQ(find_endpoint(options), "http://127.0.0.1:8484") << "it has ended";
  { std::ofstream(api_socket_path(folder_)) << ""; }
  EXPECT_EQ(find_endpoint(options), "unix://" + api_socket_path(folder_));
  ::setenv("COTENANT_ENDPOINT", "http://127.0.0.1:1", 1);
  EXPECT_EQ(find_endpoint(options), "http://127.0.0.1:1");
  options.endpoint = "http://127.0.0.1:2";
  EXPECT_EQ(find_endpoint(options), "http://127.0.0.1:2");
}

TEST_F(CredentialsFileTest, AnAgentsKeyIsMadeOnceAndTheTokenIsRead) {
  const auto first = agent_headers(folder_, "id", "");
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->size(), 2u);
  EXPECT_EQ((*first)[0].value, "id");
  EXPECT_EQ((*first)[1].value.size(), 64u);
  const std::string token = folder_ + "/token";
  put(token, "cotenant-join.x.y\n");
  const auto second = agent_headers(folder_, "id", token);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)[1].value, (*first)[1].value);
  EXPECT_EQ((*second)[2].value, "Bearer cotenant-join.x.y");
  for (const char* text : {"", "\n", "two words\n", "two\nlines\n"}) {
    put(token, text);
    EXPECT_FALSE(agent_headers(folder_, "id", token)) << text;
  }
  EXPECT_FALSE(agent_headers(folder_, "id", folder_ + "/absent"));
}

}  // namespace
}  // namespace cotenant::cli
