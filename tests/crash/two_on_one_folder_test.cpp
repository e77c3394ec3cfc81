// A second control plane on the same folder, and a folder that cannot be written: refused with a reason,
// and the first goes on.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "keep_alive_client.h"
#include "server_process.h"

namespace cotenant::tests {
namespace {

TEST(TwoOnOneFolderTest, TheSecondIsRefusedAndTheFirstGoesOn) {
  std::string pattern = testing::TempDir() + "cotenant-two-XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  const std::string data_dir = pattern + "/data";
  std::filesystem::create_directory(data_dir);
  const int first_port = free_port();
  ServerProcess first(data_dir, first_port);
  ASSERT_TRUE(first.answers()) << first.errors();
  {
    ServerProcess second(data_dir, free_port());
    EXPECT_FALSE(second.answers());
    EXPECT_NE(second.errors().find("runs already"), std::string::npos) << second.errors();
  }
  KeepAliveClient client(first_port, "");
  const auto made = client.post("CreateCluster", R"({"clusterName":"still-here"})");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->status, 200) << made->body;
  first.kill();
  // What the lock's holder left behind keeps nobody out.
  ServerProcess next(data_dir, first_port);
  ASSERT_TRUE(next.answers()) << next.errors();
  KeepAliveClient again(first_port, "");
  const auto listed = again.post("ListClusters", "{}");
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_NE(listed->body.find("still-here"), std::string::npos);
  next.kill();
  std::filesystem::remove_all(pattern);
}

}  // namespace
}  // namespace cotenant::tests
