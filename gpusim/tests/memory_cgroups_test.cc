// The device-memory cgroup (MPS/mpsv3-memory-partitioning; driver 615 and later), and the switches
// of the limits' known gaps.
#include "driver/memory_cgroups.h"

#include <gtest/gtest.h>

#include "driver/accounting.h"
#include "driver/device_table.h"

namespace gpusim {
namespace {

constexpr uint64_t kGiB = 1024 * kMiB;

AccountingOptions with_cgroups(uint32_t behaviours = kPlainProcessBesideMps | kLimitPerProcess) {
  AccountingOptions options;
  options.has_memory_cgroups = true;
  options.behaviours = behaviours;
  return options;
}

class MemoryCgroupsTest : public ::testing::Test {
 protected:
  explicit MemoryCgroupsTest(AccountingOptions options = with_cgroups())
      : books(make_devices(std::get<0>(parse_gpu_spec("1xL4")), 1), options) {}

  Status limit(const char* cgroup, uint64_t soft, uint64_t hard) {
    MemoryLimit limit = {};
    limit.soft = soft;
    limit.hard = hard;
    snprintf(limit.cgroup, sizeof limit.cgroup, "%s", cgroup);
    return books.set_memory_limit(0, limit);
  }
  void process(SessionId id, const char* cgroup) {
    books.add_session(id, static_cast<int32_t>(id) + 10, Role::kCuda, cgroup);
    ASSERT_EQ(books.create_context(id, 0, false), Status::kOk);
  }
  Status allocate(SessionId id, uint64_t bytes) { return books.allocate(id, 0, bytes, &handle); }
  std::pair<uint64_t, uint64_t> free_and_total_mib(SessionId id) {
    uint64_t free = 0;
    uint64_t total = 0;
    EXPECT_EQ(books.client_memory(id, 0, &free, &total), Status::kOk);
    return {free / kMiB, total / kMiB};
  }

  Accounting books;
  uint64_t handle = 0;
};

// "Accounts all device memory of all processes in the cgroup, with MPS or without"; over the hard
// limit: out of memory. Contexts count.
TEST_F(MemoryCgroupsTest, HardLimitHoldsForAllProcessesOfTheCgroup) {
  ASSERT_EQ(limit("/a", 0, kGiB), Status::kOk);
  process(1, "/a");
  process(2, "/a");
  process(3, "/b");
  EXPECT_EQ(allocate(1, 500 * kMiB), Status::kOk);
  EXPECT_EQ(allocate(2, 269 * kMiB), Status::kOutOfMemory) << "1024 - 2 * 128 - 500 = 268";
  EXPECT_EQ(allocate(2, 268 * kMiB), Status::kOk);
  EXPECT_EQ(allocate(1, 1), Status::kOutOfMemory);
  EXPECT_EQ(allocate(3, 5 * kGiB), Status::kOk);
  books.add_session(4, 14, Role::kCuda, "/a");
  EXPECT_EQ(books.create_context(4, 0, false), Status::kOutOfMemory) << "not even a context";
  books.remove_session(1);
  EXPECT_EQ(allocate(2, 500 * kMiB), Status::kOk);
}

// DYN: on the leaf, cudaMemGetInfo's total is the limit (30000 MiB set, total shows 30000); a limit on
// the parent is enforced but shows the whole GPU.
TEST_F(MemoryCgroupsTest, LeafLimitShowsParentLimitDoesNot) {
  ASSERT_EQ(limit("/pod", 0, 2 * kGiB), Status::kOk);
  ASSERT_EQ(limit("/pod/leaf", 0, kGiB), Status::kOk);
  process(1, "/pod/leaf");
  process(2, "/pod/other");
  EXPECT_EQ(free_and_total_mib(1), std::make_pair(uint64_t{896}, uint64_t{1024}));
  EXPECT_EQ(free_and_total_mib(2).second, 22563u);
  EXPECT_EQ(allocate(1, 897 * kMiB), Status::kOutOfMemory);
  EXPECT_EQ(allocate(2, 1793 * kMiB), Status::kOutOfMemory) << "2048 - 2 * 128 = 1792";
  EXPECT_EQ(allocate(2, 1792 * kMiB), Status::kOk);
  process(3, "/podium");
  EXPECT_EQ(allocate(3, 3 * kGiB), Status::kOk) << "not below /pod";
}

// Read-back, clearing, and paths in full as NVML takes them.
TEST_F(MemoryCgroupsTest, SetGetClear) {
  process(1, "/a/b");
  MemoryLimit read = {};
  snprintf(read.cgroup, sizeof read.cgroup, "/sys/fs/cgroup/a/b/");
  ASSERT_EQ(books.memory_limit(0, &read), Status::kOk);
  EXPECT_EQ(read.hard, UINT64_MAX) << "max until set";
  EXPECT_EQ(read.current_used, 128 * kMiB);
  ASSERT_EQ(limit("/sys/fs/cgroup/a/b", kMiB, 100 * kMiB), Status::kOk);
  ASSERT_EQ(books.memory_limit(0, &read), Status::kOk);
  EXPECT_EQ(read.soft, kMiB);
  EXPECT_EQ(read.hard, 100 * kMiB);
  EXPECT_EQ(allocate(1, 1), Status::kOutOfMemory) << "lowered below what is used";
  ASSERT_EQ(limit("/a/b", 0, UINT64_MAX), Status::kOk);
  EXPECT_EQ(allocate(1, kMiB), Status::kOk);
  EXPECT_EQ(limit("a/b", 0, kMiB), Status::kBadRequest);
  EXPECT_EQ(limit("", 0, kMiB), Status::kBadRequest);
  EXPECT_EQ(limit("/a", 2 * kMiB, kMiB), Status::kBadRequest) << "soft above hard";
}

// "Over soft = may be evicted; an evicted client gets 810."
TEST_F(MemoryCgroupsTest, SoftLimitIsPromised) {
  ASSERT_EQ(limit("/promised", 4 * kGiB, UINT64_MAX), Status::kOk);
  process(1, "/promised");
  process(2, "/greedy");
  const uint64_t rest = (22563 - 256) * kMiB;
  ASSERT_EQ(allocate(2, rest), Status::kOk) << "while nobody needs it";
  EXPECT_EQ(allocate(1, 3 * kGiB), Status::kOk);
  EXPECT_EQ(books.check(2, 0), Status::kClientTerminated) << "810";
  EXPECT_EQ(allocate(1, rest), Status::kOutOfMemory) << "beyond the promise nobody is evicted";
}

// Before 615 there is none.
TEST(MemoryCgroups, OlderDrivers) {
  Accounting books(make_devices(std::get<0>(parse_gpu_spec("1xL4")), 1), {});
  MemoryLimit limit = {0, kGiB, 0, "/a"};
  EXPECT_EQ(books.set_memory_limit(0, limit), Status::kUnsupported);
  EXPECT_EQ(books.memory_limit(0, &limit), Status::kUnsupported);
}

// "Not with MIG."
TEST(MemoryCgroups, NotWithMig) {
  Accounting books(make_devices(std::get<0>(parse_gpu_spec("1xH100:1g.10gb")), 1), with_cgroups());
  MemoryLimit limit = {0, kGiB, 0, "/a"};
  EXPECT_EQ(books.set_memory_limit(0, limit), Status::kUnsupported);
  EXPECT_EQ(books.set_memory_limit(1, limit), Status::kUnsupported);
}

TEST(MemoryCgroups, Paths) {
  EXPECT_EQ(normal_cgroup_path("/sys/fs/cgroup"), "/");
  EXPECT_EQ(normal_cgroup_path("/sys/fs/cgroup/memory/docker/1"), "/docker/1");
  EXPECT_EQ(normal_cgroup_path("/x/"), "/x");
  EXPECT_EQ(normal_cgroup_path("x"), "");
  EXPECT_TRUE(is_within("/a/b", "/a"));
  EXPECT_TRUE(is_within("/a", "/"));
  EXPECT_FALSE(is_within("/ab", "/a"));
  EXPECT_EQ(cgroup_of_text("0::/system.slice/docker-1.scope\n"), "/system.slice/docker-1.scope");
  EXPECT_EQ(cgroup_of_text("4:memory:/docker/1\n1:cpu:/\n0::/\n"), "/docker/1") << "hybrid";
  EXPECT_EQ(cgroup_of_text("0::/\n"), "/");
  EXPECT_EQ(cgroup_of_text("\n:::\nx"), "");
}

// The gaps of the pinned limit, each with its switch: on by default, because the real one has them.
TEST(Gaps, SeveralProcesses) {
  for (const bool gap : {true, false}) {
    AccountingOptions options;
    if (!gap) options.behaviours &= ~uint32_t{kLimitPerProcess};
    Accounting books(make_devices(std::get<0>(parse_gpu_spec("1xL4")), 1), options);
    books.add_session(100, 1000, Role::kMpsServer);
    ASSERT_EQ(books.create_context(100, 0, false), Status::kOk);
    MpsAdmission terms = {};
    terms.limits[0] = kGiB;
    for (const SessionId id : {1, 2}) {
      ASSERT_EQ(books.admit(100, static_cast<int32_t>(id), terms), Status::kOk);
      books.add_session(id, static_cast<int32_t>(id), Role::kCuda, "/container");
      ASSERT_EQ(books.create_context(id, 0, true), Status::kOk);
    }
    uint64_t handle = 0;
    EXPECT_EQ(books.allocate(1, 0, 700 * kMiB, &handle), Status::kOk);
    EXPECT_EQ(books.allocate(2, 0, 700 * kMiB, &handle), gap ? Status::kOk : Status::kOutOfMemory)
        << "fork twice, get twice (facts 2.3e)";
  }
}

TEST(Gaps, PlainProcessBesideAnMpsServer) {
  for (const bool gap : {true, false}) {
    AccountingOptions options;
    if (!gap) options.behaviours &= ~uint32_t{kPlainProcessBesideMps};
    Accounting books(make_devices(std::get<0>(parse_gpu_spec("1xL4")), 1), options);
    books.add_session(1, 11, Role::kCuda);
    EXPECT_EQ(books.create_context(1, 0, false), Status::kOk) << "no server yet";
    books.add_session(100, 1000, Role::kMpsServer);
    ASSERT_EQ(books.create_context(100, 0, false), Status::kOk);
    books.add_session(2, 12, Role::kCuda);
    EXPECT_EQ(books.create_context(2, 0, false), gap ? Status::kOk : Status::kDeviceBusy)
        << "whole GPU in DEFAULT mode, no error (facts 2.3b)";
  }
}

// "Not on vGPU" (MPS/when-to-use-mps).
TEST(Gaps, NoMpsServerOnAVgpu) {
  Accounting books(make_devices(std::get<0>(parse_gpu_spec("1xL4-6Q")), 1), {});
  books.add_session(100, 1000, Role::kMpsServer);
  EXPECT_EQ(books.create_context(100, 0, false), Status::kUnsupported);
  books.add_session(1, 11, Role::kCuda);
  EXPECT_EQ(books.create_context(1, 0, false), Status::kOk);
}

TEST(Mig, OnlyThePartsCanBeUsed) {
  Accounting books(make_devices(std::get<0>(parse_gpu_spec("1xA100-40:3g.20gb+1g.5gb")), 1), {});
  books.add_session(1, 11, Role::kCuda);
  EXPECT_EQ(books.create_context(1, 0, false), Status::kDeviceBusy);
  EXPECT_EQ(books.create_context(1, 1, false), Status::kOk);
  EXPECT_EQ(books.create_context(1, 2, false), Status::kOk);
  DeviceState whole;
  ASSERT_EQ(books.state(0, 0, &whole), Status::kOk);
  EXPECT_EQ(whole.used_bytes, 256 * kMiB) << "what its parts use";
  ASSERT_EQ(books.lose(0), Status::kOk);
  EXPECT_EQ(books.check(1, 1), Status::kFaulted);
  EXPECT_EQ(books.check(1, 2), Status::kFaulted);
}

}  // namespace
}  // namespace gpusim
