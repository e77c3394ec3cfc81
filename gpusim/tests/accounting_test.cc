#include "driver/accounting.h"

#include <gtest/gtest.h>

#include "driver/device_table.h"

namespace gpusim {
namespace {

constexpr uint64_t kUsable = 22563 * kMiB;
constexpr uint64_t kContext = 128 * kMiB;
constexpr uint64_t kServerShare = 30 * kMiB;

class AccountingTest : public ::testing::Test {
 protected:
  explicit AccountingTest(AccountingOptions options = {})
      : books(make_devices(std::get<0>(parse_gpu_spec("2xL4")), 1), options) {}

  uint64_t used(uint32_t device = 0) {
    DeviceState state;
    EXPECT_EQ(books.state(device, 0, &state), Status::kOk);
    return state.used_bytes;
  }
  Status allocate(SessionId session, uint64_t bytes) {
    return books.allocate(session, 0, bytes, &handle);
  }
  // Session 100, pid 1000, is an MPS server on device 0.
  void start_server() {
    books.add_session(100, 1000, Role::kMpsServer);
    ASSERT_EQ(books.create_context(100, 0, false), Status::kOk);
  }
  void admit(SessionId session, int32_t pid, uint64_t limit_bytes) {
    MpsAdmission terms = {};
    terms.limits[0] = limit_bytes;
    ASSERT_EQ(books.admit(100, pid, terms), Status::kOk);
    books.add_session(session, pid, Role::kCuda);
  }

  Accounting books;
  uint64_t handle = 0;
};

TEST_F(AccountingTest, DeviceMemoryToTheLastBlock) {
  books.add_session(1, 10, Role::kCuda);
  EXPECT_EQ(allocate(1, kMiB), Status::kBadRequest) << "no context yet";
  EXPECT_EQ(books.create_context(1, 0, false), Status::kOk);
  EXPECT_EQ(used(), kContext);
  EXPECT_EQ(allocate(1, kUsable - kContext + 1), Status::kOutOfMemory);
  EXPECT_EQ(allocate(1, kUsable - kContext), Status::kOk);
  EXPECT_EQ(used(), kUsable);
  EXPECT_EQ(allocate(1, 1), Status::kOutOfMemory);
  EXPECT_EQ(allocate(1, 0), Status::kBadRequest);
  EXPECT_EQ(allocate(1, UINT64_MAX), Status::kOutOfMemory);
  EXPECT_EQ(books.release(1, handle), Status::kOk);
  EXPECT_EQ(books.release(1, handle), Status::kNotFound);
  EXPECT_EQ(used(), kContext);
  books.remove_session(1);
  EXPECT_EQ(used(), 0u);
}

// "Scope: one client PROCESS on one device"; "CUDA's own allocations for a context count against
// it".
TEST_F(AccountingTest, LimitIsPerProcessAndIncludesTheContext) {
  start_server();
  admit(1, 10, 1024 * kMiB);
  ASSERT_EQ(books.create_context(1, 0, true), Status::kOk);
  EXPECT_EQ(allocate(1, 896 * kMiB + 1), Status::kOutOfMemory);
  EXPECT_EQ(allocate(1, 896 * kMiB), Status::kOk);
  uint64_t free_bytes = 1;
  uint64_t total_bytes = 0;
  EXPECT_EQ(books.client_memory(1, 0, &free_bytes, &total_bytes), Status::kOk);
  EXPECT_EQ(free_bytes, 0u);
  EXPECT_EQ(total_bytes, kUsable) << "total stays the whole card's";
  // A second connection of the same process has no second limit...
  books.add_session(2, 10, Role::kCuda);
  EXPECT_EQ(books.create_context(2, 0, true), Status::kOutOfMemory);
  // ...another process has its own.
  admit(3, 11, 1024 * kMiB);
  ASSERT_EQ(books.create_context(3, 0, true), Status::kOk);
  EXPECT_EQ(allocate(3, 896 * kMiB), Status::kOk);
}

TEST_F(AccountingTest, ContextThatDoesNotFitItsLimit) {
  start_server();
  admit(1, 10, 127 * kMiB);
  EXPECT_EQ(books.create_context(1, 0, true), Status::kOutOfMemory);
  EXPECT_EQ(used(), kServerShare) << "a refusal changes nothing";
}

TEST_F(AccountingTest, ExclusiveProcess) {
  ASSERT_EQ(books.set_compute_mode(0, 3), Status::kOk);
  books.add_session(1, 10, Role::kCuda);
  books.add_session(2, 10, Role::kCuda);
  books.add_session(3, 11, Role::kCuda);
  EXPECT_EQ(books.create_context(1, 0, false), Status::kOk);
  EXPECT_EQ(books.create_context(2, 0, false), Status::kOk) << "same process";
  EXPECT_EQ(books.create_context(3, 0, false), Status::kDeviceBusy);
  EXPECT_EQ(books.create_context(3, 1, false), Status::kOk) << "the other device is DEFAULT";
  books.add_session(100, 1000, Role::kMpsServer);
  EXPECT_EQ(books.create_context(100, 0, false), Status::kDeviceBusy) << "a server is a process";
  books.remove_session(1);
  books.remove_session(2);
  EXPECT_EQ(books.create_context(100, 0, false), Status::kOk);
  EXPECT_EQ(books.create_context(3, 0, false), Status::kDeviceBusy) << "the server holds it";
}

TEST_F(AccountingTest, ComputeModeValues) {
  const struct {
    uint64_t mode;
    Status want;
  } kCases[] = {{0, Status::kOk}, {1, Status::kBadRequest}, {2, Status::kOk},
                {3, Status::kOk}, {4, Status::kBadRequest}, {UINT64_MAX, Status::kBadRequest}};
  for (const auto& test : kCases) EXPECT_EQ(books.set_compute_mode(0, test.mode), test.want);
  EXPECT_EQ(books.set_compute_mode(2, 0), Status::kNoSuchDevice);
}

// 48 client contexts per GPU up to CUDA 13.0: contexts, not processes.
TEST_F(AccountingTest, ClientSlots) {
  start_server();
  admit(1, 10, 0);
  for (int i = 0; i < 48; ++i) ASSERT_EQ(books.create_context(1, 0, true), Status::kOk);
  EXPECT_EQ(books.create_context(1, 0, true), Status::kTooManyClients);
  EXPECT_EQ(books.destroy_context(1, 0), Status::kOk);
  EXPECT_EQ(books.create_context(1, 0, true), Status::kOk);
}

// The server's end: its clients get CUDA error 806 and hold nothing any more.
TEST_F(AccountingTest, ServerDeathBreaksItsClientsOnly) {
  start_server();
  admit(1, 10, 0);
  books.add_session(2, 20, Role::kCuda);
  ASSERT_EQ(books.create_context(1, 0, true), Status::kOk);
  ASSERT_EQ(books.create_context(2, 0, false), Status::kOk);
  ASSERT_EQ(allocate(1, kMiB), Status::kOk);
  books.remove_session(100);
  EXPECT_EQ(books.check(1, 0), Status::kMpsServerGone);
  EXPECT_EQ(allocate(1, kMiB), Status::kMpsServerGone);
  EXPECT_EQ(books.create_context(1, 0, true), Status::kMpsServerGone);
  EXPECT_EQ(allocate(2, kMiB), Status::kOk);
  EXPECT_EQ(used(), kContext + kMiB);
}

TEST_F(AccountingTest, TerminatedClient) {
  start_server();
  admit(1, 10, 0);
  admit(2, 11, 0);
  ASSERT_EQ(books.create_context(1, 0, true), Status::kOk);
  ASSERT_EQ(books.create_context(2, 0, true), Status::kOk);
  EXPECT_EQ(books.terminate(100, 10), Status::kOk);
  EXPECT_EQ(books.check(1, 0), Status::kClientTerminated);
  EXPECT_EQ(books.check(2, 0), Status::kOk);
  EXPECT_EQ(used(), kServerShare + kContext);
  EXPECT_EQ(books.terminate(100, 12), Status::kNotFound);
}

TEST_F(AccountingTest, WhoMayWhat) {
  books.add_session(1, 10, Role::kObserver);
  books.add_session(2, 11, Role::kCuda);
  EXPECT_EQ(books.create_context(1, 0, false), Status::kNotPermitted);
  EXPECT_EQ(books.create_context(2, 2, false), Status::kNoSuchDevice);
  EXPECT_EQ(books.create_context(2, 0, true), Status::kMpsServerGone) << "not admitted";
  EXPECT_EQ(books.admit(2, 10, {}), Status::kNotPermitted) << "not a server";
  EXPECT_EQ(books.destroy_context(2, 0), Status::kNotFound);
  EXPECT_EQ(books.create_context(7, 0, false), Status::kBadRequest) << "no such session";
}

class ContextFreeLimitTest : public AccountingTest {
 protected:
  ContextFreeLimitTest() : AccountingTest(AccountingOptions{false, 4}) {}
};

TEST_F(ContextFreeLimitTest, SwitchAndAllocationCount) {
  start_server();
  admit(1, 10, 100 * kMiB);
  ASSERT_EQ(books.create_context(1, 0, true), Status::kOk);
  EXPECT_EQ(allocate(1, 100 * kMiB + 1), Status::kOutOfMemory);
  EXPECT_EQ(allocate(1, 97 * kMiB), Status::kOk);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(allocate(1, kMiB), Status::kOk);
  EXPECT_EQ(allocate(1, 1), Status::kTooManyAllocations);
}

TEST_F(AccountingTest, Utilization) {
  const auto percent = [this](uint64_t now_us) {
    DeviceState state;
    books.state(0, now_us, &state);
    return state.gpu_utilization_percent;
  };
  books.report_work(0, 400000, 5000000);
  books.report_work(0, 200000, 5500000);
  EXPECT_EQ(percent(5900000), 60u);
  EXPECT_EQ(percent(6100000), 60u) << "the last whole second";
  EXPECT_EQ(percent(7000000), 0u);
  books.report_work(0, UINT64_MAX, 8000000);
  EXPECT_EQ(percent(8000000), 100u);
}

}  // namespace
}  // namespace gpusim
