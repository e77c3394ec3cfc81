// The real process on a disk that is full, and on one that is read-only: what cannot be stored is refused
// with the reason, reads go on, and writes work again when there is room. Mounts small file systems of
// its own, which needs root; elsewhere it is skipped, and says so.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "codec/json.h"
#include "keep_alive_client.h"
#include "server_process.h"

namespace cotenant::tests {
namespace {

using codec::Json;
using Clock = std::chrono::steady_clock;

// A folder with a file system of its own, for as long as the object lives.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size) {
    std::string pattern = testing::TempDir() + "cotenant-disk-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) return;
    top_ = pattern;
    std::filesystem::create_directory(folder());
    const std::string options = fmt::format("size={},mode=0700", size);
    mounted_ = ::mount("none", folder().c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!mounted_) refusal = std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder().c_str(), MNT_DETACH);
    if (!top_.empty()) std::filesystem::remove_all(top_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  std::string folder() const { return top_ + "/data"; }
  std::string ballast() const { return folder() + "/ballast"; }
  bool make_read_only() const {
    return ::mount("none", folder().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }
  // Somebody else's file takes all the room but so much.
  void fill(std::uintmax_t free_bytes) const {
    const auto room = std::filesystem::space(folder()).available;
    const base::UniqueFd file(::open(ballast().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (room <= free_bytes) return;
    ASSERT_EQ(::posix_fallocate(file.get(), 0, static_cast<off_t>(room - free_bytes)), 0);
  }

  std::string refusal;

 private:
  std::string top_;
  bool mounted_ = false;
};

#define SKIP_UNLESS_MOUNTED(disk)                                                  \
  if (!(disk).mounted()) {                                                         \
    GTEST_SKIP() << "mounting a small file system was refused (" << (disk).refusal \
                 << "): run as root to see a full disk below the real process";    \
  }

class FullDiskTest : public testing::Test {
 protected:
  PlainResponse post(std::string_view operation, const std::string& body) {
    const auto response = KeepAliveClient(port_, "").post(operation, body);
    EXPECT_TRUE(response) << operation << ": " << response.error().message;
    return response ? *response : PlainResponse{};
  }

  PlainResponse register_definition(const std::string& family) {
    // Large, so that not many are needed.
    return post("RegisterTaskDefinition",
                fmt::format(R"({{"family":"{}","containerDefinitions":[{{"name":"c","image":"i",)"
                            R"("memory":64,"command":["{}"]}}]}})",
                            family, std::string(30'000, 'x')));
  }

  std::size_t families() {
    const auto answer = Json::parse(post("ListTaskDefinitionFamilies", "{}").body);
    return answer ? answer->array_or_empty("families").size() : 0;
  }

  const int port_ = free_port();
};

TEST_F(FullDiskTest, RefusesWritesServesReadsAndGoesOnWhenThereIsRoom) {
  const SmallDisk disk("24m");
  SKIP_UNLESS_MOUNTED(disk);
  std::size_t stored = 0;
  {
    ServerProcess server(disk.folder(), port_);
    ASSERT_TRUE(server.answers()) << server.errors();
    ASSERT_EQ(register_definition("before").status, 200);
    stored = 1;
    disk.fill(256 * 1024);
    std::optional<PlainResponse> refused;
    for (int i = 0; i < 100 && !refused; ++i) {
      PlainResponse answer = register_definition(fmt::format("more-{}", i));
      if (answer.status == 200) {
        ++stored;
      } else {
        refused = std::move(answer);
      }
    }
    ASSERT_TRUE(refused) << "the disk was never full";
    EXPECT_EQ(refused->status, 500);
    EXPECT_NE(refused->body.find("ServerException"), std::string::npos) << refused->body;
    EXPECT_NE(refused->body.find("nothing was changed, because the store refuses writes"),
              std::string::npos)
        << refused->body;
    EXPECT_NE(refused->body.find("full"), std::string::npos) << refused->body;

    // What was acknowledged is there, and what was refused is not; also many refusals later.
    for (int i = 0; i < 50; ++i) EXPECT_NE(register_definition("refused").status, 200);
    EXPECT_EQ(families(), stored);
    EXPECT_EQ(post("DescribeTaskDefinition", R"({"taskDefinition":"before"})").status, 200);
    EXPECT_EQ(post("RegisterTaskDefinition", R"({"family":"f"})").status, 400);

    std::filesystem::remove(disk.ballast());
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    PlainResponse after;
    while ((after = register_definition("after")).status != 200 && Clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ASSERT_EQ(after.status, 200) << after.body;
    ++stored;
    EXPECT_EQ(families(), stored);
  }
  ServerProcess again(disk.folder(), port_);
  ASSERT_TRUE(again.answers()) << again.errors();
  EXPECT_EQ(families(), stored);
}

// Killed while the disk was full, started while it still is.
TEST_F(FullDiskTest, StartsOnAFullDiskOrSaysWhyNot) {
  const SmallDisk disk("24m");
  SKIP_UNLESS_MOUNTED(disk);
  {
    ServerProcess server(disk.folder(), port_);
    ASSERT_TRUE(server.answers()) << server.errors();
    ASSERT_EQ(register_definition("before").status, 200);
    disk.fill(0);
    while (register_definition("more").status == 200) {
    }
  }
  {
    ServerProcess server(disk.folder(), port_);
    if (server.answers()) {
      EXPECT_EQ(post("DescribeTaskDefinition", R"({"taskDefinition":"before"})").status, 200);
    } else {
      EXPECT_NE(server.errors().find("full"), std::string::npos) << server.errors();
      EXPECT_NE(server.errors().find(disk.folder()), std::string::npos) << server.errors();
    }
  }
  std::filesystem::remove(disk.ballast());
  ServerProcess server(disk.folder(), port_);
  ASSERT_TRUE(server.answers()) << server.errors();
  EXPECT_EQ(post("DescribeTaskDefinition", R"({"taskDefinition":"before"})").status, 200);
  EXPECT_EQ(register_definition("after").status, 200);
}

TEST_F(FullDiskTest, AReadOnlyFolderIsRefusedByName) {
  const SmallDisk disk("24m");
  SKIP_UNLESS_MOUNTED(disk);
  ASSERT_TRUE(disk.make_read_only()) << std::strerror(errno);
  ServerProcess server(disk.folder(), port_);
  EXPECT_FALSE(server.answers());
  EXPECT_NE(server.errors().find(disk.folder()), std::string::npos) << server.errors();
  EXPECT_NE(server.errors().find("read-only"), std::string::npos) << server.errors();
  EXPECT_NE(server.errors().find("--data-dir"), std::string::npos) << server.errors();
}

}  // namespace
}  // namespace cotenant::tests
