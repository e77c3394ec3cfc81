// Faults on demand: who is hit, with what, and what ends it. Rules without I/O.
#include <gtest/gtest.h>

#include "common/xid.h"
#include "driver/accounting.h"
#include "driver/device_table.h"

namespace gpusim {
namespace {

class FaultsTest : public ::testing::Test {
 protected:
  FaultsTest() : books(make_devices(std::get<0>(parse_gpu_spec("3xL4")), 1), {}) {}

  void plain(SessionId id, int32_t pid, std::vector<uint32_t> devices) {
    books.add_session(id, pid, Role::kCuda);
    for (const uint32_t device : devices) {
      ASSERT_EQ(books.create_context(id, device, false), Status::kOk);
    }
  }
  void server(SessionId id, int32_t pid, std::vector<uint32_t> devices) {
    books.add_session(id, pid, Role::kMpsServer);
    for (const uint32_t device : devices) {
      ASSERT_EQ(books.create_context(id, device, false), Status::kOk);
    }
  }
  void client(SessionId id, int32_t pid, std::vector<uint32_t> devices, SessionId by = 100) {
    ASSERT_EQ(books.admit(by, pid, {}), Status::kOk);
    books.add_session(id, pid, Role::kCuda);
    for (const uint32_t device : devices) {
      ASSERT_EQ(books.create_context(id, device, true), Status::kOk);
    }
  }
  // The sticky error of a session on a device.
  uint32_t error(SessionId id, uint32_t device) {
    const bool faulted = books.check(id, device) == Status::kFaulted;
    EXPECT_EQ(faulted, books.sticky_error(id, device) != 0);
    return books.sticky_error(id, device);
  }

  Accounting books;
  uint64_t handle = 0;
};

// MPS/architecture, the documentation's own example: A, B, C are on devices 0 and 1, D on 2; a fatal
// fault of one of the first three is reported to those three, and D goes on.
TEST_F(FaultsTest, FatalFaultReachesAllClientsOfTheDeviceSet) {
  server(100, 1000, {0, 1, 2});
  client(1, 11, {0, 1});
  client(2, 12, {0});
  client(3, 13, {1});
  client(4, 14, {2});
  ASSERT_EQ(books.inject_fault(0, 11, 31, 0), Status::kOk);
  EXPECT_EQ(error(1, 0), 700u);
  EXPECT_EQ(error(1, 1), 700u);
  EXPECT_EQ(error(2, 0), 700u);
  EXPECT_EQ(error(3, 1), 700u) << "reached by device 1, which the faulting client also uses";
  EXPECT_EQ(error(4, 2), 0u);
  EXPECT_EQ(books.allocate(4, 2, kMiB, &handle), Status::kOk);
  EXPECT_EQ(books.allocate(2, 0, kMiB, &handle), Status::kFaulted);
  const auto events = books.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, EventKind::kFatalFault);
  EXPECT_EQ(events[0].type, 0x8u) << "XidCritical";
  EXPECT_EQ(events[0].data, 31u);
  EXPECT_EQ(events[0].pid, 11);
  EXPECT_EQ(events[0].devices_hit, 0b011u);
}

// Contexts of plain processes are isolated from each other: only the faulting one is hit, and no MPS
// server has anything to do with it.
TEST_F(FaultsTest, PlainProcessHitsItselfOnly) {
  server(100, 1000, {0});
  client(1, 11, {0});
  plain(2, 12, {0, 1});
  plain(3, 13, {0});
  ASSERT_EQ(books.inject_fault(0, 12, 31, 0), Status::kOk);
  EXPECT_EQ(error(2, 0), 700u);
  EXPECT_EQ(error(2, 1), 0u);
  EXPECT_EQ(error(1, 0) + error(3, 0), 0u);
  EXPECT_EQ(books.take_events().at(0).kind, EventKind::kNvml);
}

// "Clients are not told who caused it": one of another server is not concerned.
TEST_F(FaultsTest, AnotherServersClientsGoOn) {
  server(100, 1000, {0});
  server(101, 1001, {1});
  client(1, 11, {0});
  client(2, 12, {1}, 101);
  ASSERT_EQ(books.inject_fault(0, 0, 13, 0), Status::kOk);
  EXPECT_EQ(error(1, 0), 719u);
  EXPECT_EQ(error(2, 1), 0u);
}

TEST_F(FaultsTest, FirstErrorStaysAndMemoryStaysUntilTheEnd) {
  plain(1, 11, {0});
  ASSERT_EQ(books.allocate(1, 0, 100 * kMiB, &handle), Status::kOk);
  ASSERT_EQ(books.inject_fault(0, 11, 31, 0), Status::kOk);
  ASSERT_EQ(books.inject_fault(0, 11, 13, 0), Status::kOk);
  EXPECT_EQ(error(1, 0), 700u) << "sticky";
  EXPECT_EQ(books.release(1, handle), Status::kFaulted);
  EXPECT_EQ(books.destroy_context(1, 0), Status::kFaulted);
  DeviceState state;
  ASSERT_EQ(books.state(0, 0, &state), Status::kOk);
  EXPECT_EQ(state.used_bytes, 228 * kMiB);
  books.remove_session(1);
  ASSERT_EQ(books.state(0, 0, &state), Status::kOk);
  EXPECT_EQ(state.used_bytes, 0u);
}

// 807 while the server is in FAULT (MPS/architecture), on the devices that were hit; the server ends
// it, by destroying and creating its contexts there, when all affected clients have gone.
TEST_F(FaultsTest, ServerInFault) {
  server(100, 1000, {0, 1});
  client(1, 11, {0});
  ASSERT_EQ(books.inject_fault(0, 11, 31, 0), Status::kOk);
  EXPECT_EQ(books.set_server_fault(1, true), Status::kNotPermitted);
  ASSERT_EQ(books.set_server_fault(100, true), Status::kOk);
  ASSERT_EQ(books.admit(100, 12, {}), Status::kOk);
  books.add_session(2, 12, Role::kCuda);
  EXPECT_EQ(books.create_context(2, 0, true), Status::kMpsServerNotReady);
  EXPECT_EQ(books.create_context(2, 1, true), Status::kOk);
  std::vector<ProcessEntry> rows;
  uint64_t total = 0;
  ASSERT_EQ(books.processes(0, 0, &rows, &total), Status::kOk);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].faulted, 700u) << "who is affected";
  EXPECT_EQ(rows[1].faulted, 0u) << "the server itself";
  books.remove_session(1);
  EXPECT_EQ(books.destroy_context(100, 0), Status::kOk);
  EXPECT_EQ(books.create_context(100, 0, false), Status::kOk);
  ASSERT_EQ(books.set_server_fault(100, false), Status::kOk);
  EXPECT_EQ(books.create_context(2, 0, true), Status::kOk);
}

TEST_F(FaultsTest, OffTheBusAndBack) {
  plain(1, 11, {0});
  plain(2, 12, {1});
  const std::string before = books.devices()[0].uuid;
  ASSERT_EQ(books.set_compute_mode(0, 3), Status::kOk);
  ASSERT_EQ(books.lose(0), Status::kOk);
  EXPECT_EQ(error(1, 0), 999u);
  EXPECT_EQ(error(2, 1), 0u);
  EXPECT_EQ(books.create_context(2, 0, false), Status::kGpuLost);
  auto events = books.take_events();
  ASSERT_EQ(events.size(), 3u) << "Xid 79, GpuUnavailable, GpuRecoveryAction";
  EXPECT_EQ(events[0].kind, EventKind::kDeviceLost);
  EXPECT_EQ(events[0].data, 79u);
  EXPECT_EQ(events[1].type, 0x4000u);
  EXPECT_EQ(events[2].type, 0x8000u);
  EXPECT_EQ(events[2].data, 2u) << "reboot";
  EXPECT_EQ(books.lose(0), Status::kOk) << "twice is once";
  EXPECT_TRUE(books.take_events().empty());
  EXPECT_EQ(books.reset(0), Status::kGpuLost);

  ASSERT_EQ(books.restore(0, ""), Status::kOk);
  EXPECT_EQ(books.devices()[0].uuid, before);
  EXPECT_EQ(error(1, 0), 999u) << "what ran before stays dead";
  EXPECT_EQ(books.create_context(2, 0, false), Status::kOk);
  DeviceState state;
  ASSERT_EQ(books.state(0, 0, &state), Status::kOk);
  EXPECT_EQ(state.compute_mode, ComputeMode::kDefault)
      << "a setting of the driver, not of the card";
  EXPECT_EQ(state.generation, 0u) << "the same GPU";
  EXPECT_EQ(books.take_events().at(0).kind, EventKind::kDeviceRestored);

  ASSERT_EQ(books.lose(0), Status::kOk);
  ASSERT_EQ(books.restore(0, "GPU-another"), Status::kOk);
  EXPECT_STREQ(books.devices()[0].uuid, "GPU-another");
  ASSERT_EQ(books.state(0, 0, &state), Status::kOk);
  EXPECT_EQ(state.generation, 1u);
}

// The Xid classes of NVIDIA's catalogue: what each entails for the programs on the GPU and for the GPU.
TEST_F(FaultsTest, XidClasses) {
  const struct {
    std::vector<uint32_t> xids;
    uint32_t error_of_culprit;  // 0: goes on
    bool neighbours_too;
    DeviceHealth health;
  } kCases[] = {
      {{31}, 700, true, DeviceHealth::kGood},
      {{8, 11, 13, 32, 39, 40, 41, 60, 68, 69}, 719, true, DeviceHealth::kGood},
      {{43, 45, 63, 137, 154, 171, 172, 9999}, 0, false, DeviceHealth::kGood},
      {{94}, 214, false, DeviceHealth::kGood},
      {{48, 64, 95, 140, 156}, 214, true, DeviceHealth::kResetRequired},
      {{46, 62, 74, 109, 110, 119, 120, 143, 155, 158}, 719, true, DeviceHealth::kResetRequired},
      {{79}, 999, true, DeviceHealth::kLost},
  };
  for (const auto& test : kCases) {
    for (const uint32_t xid : test.xids) {
      SCOPED_TRACE(xid);
      Accounting fresh(make_devices(std::get<0>(parse_gpu_spec("1xL4")), 1), {});
      books = std::move(fresh);
      server(100, 1000, {0});
      client(1, 11, {0});
      client(2, 12, {0});
      ASSERT_EQ(books.inject_xid(0, 11, xid, false), Status::kOk);
      EXPECT_EQ(error(1, 0), test.error_of_culprit);
      EXPECT_EQ(error(2, 0), test.neighbours_too ? test.error_of_culprit : 0u);
      EXPECT_EQ(books.devices()[0].health, test.health);
      const auto events = books.take_events();
      ASSERT_FALSE(events.empty());
      EXPECT_EQ(events[0].type, 0x8u);
      EXPECT_EQ(events[0].data, xid);
      EXPECT_STRNE(xid_text(xid), "");
    }
  }
}

TEST_F(FaultsTest, EventOnly) {
  plain(1, 11, {0});
  ASSERT_EQ(books.inject_xid(0, 11, 79, true), Status::kOk);
  EXPECT_EQ(error(1, 0), 0u);
  EXPECT_EQ(books.devices()[0].health, DeviceHealth::kGood);
  EXPECT_EQ(books.take_events().at(0).data, 79u);
}

TEST_F(FaultsTest, EccAndReset) {
  plain(1, 11, {0});
  ASSERT_EQ(books.inject_ecc(0, 5, false), Status::kOk);
  EXPECT_EQ(error(1, 0), 0u) << "corrected";
  auto events = books.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, 0x1u) << "SBE";
  ASSERT_EQ(books.inject_ecc(0, 1, true), Status::kOk);
  EXPECT_EQ(error(1, 0), 214u);
  events = books.take_events();
  ASSERT_EQ(events.size(), 3u) << "DBE, Xid 48, recovery action";
  EXPECT_EQ(events[0].type, 0x2u);
  EXPECT_EQ(events[1].data, 48u);
  EXPECT_EQ(events[2].data, 1u) << "reset";
  DeviceState state;
  ASSERT_EQ(books.state(0, 0, &state), Status::kOk);
  EXPECT_EQ(state.ecc_corrected, 5u);
  EXPECT_EQ(state.ecc_uncorrected, 1u);
  EXPECT_EQ(books.create_context(1, 0, false), Status::kFaulted);
  EXPECT_EQ(books.reset(0), Status::kDeviceBusy) << "a process is on it";
  books.remove_session(1);
  EXPECT_EQ(books.reset(0), Status::kOk);
  ASSERT_EQ(books.state(0, 0, &state), Status::kOk);
  EXPECT_EQ(state.ecc_uncorrected, 0u);
  EXPECT_EQ(state.health, DeviceHealth::kGood);
}

TEST_F(FaultsTest, BadArguments) {
  EXPECT_EQ(books.inject_fault(9, 0, 31, 0), Status::kNoSuchDevice);
  EXPECT_EQ(books.inject_fault(0, 4711, 31, 0), Status::kNotFound) << "no context there";
  EXPECT_EQ(books.inject_xid(9, 0, 31, false), Status::kNoSuchDevice);
  EXPECT_EQ(books.inject_ecc(0, 0, false), Status::kBadRequest);
  EXPECT_EQ(books.lose(9), Status::kNoSuchDevice);
  EXPECT_EQ(books.restore(9, ""), Status::kNoSuchDevice);
  EXPECT_EQ(books.set_slow_ms(0, 600001), Status::kBadRequest);
  EXPECT_TRUE(books.take_events().empty());
}

// A kernel that goes wrong: the launch itself succeeds, as launches are asynchronous.
TEST_F(FaultsTest, KernelFault) {
  plain(1, 11, {0});
  uint64_t modelled_us = 0;
  EXPECT_EQ(books.launch(1, 0, 10, 0, KernelFault::kIllegalAddress, 0, &modelled_us), Status::kOk);
  EXPECT_EQ(error(1, 0), 700u);
  plain(2, 12, {0});
  EXPECT_EQ(books.launch(2, 0, 10, 0, KernelFault::kLaunchFailed, 0, &modelled_us), Status::kOk);
  EXPECT_EQ(error(2, 0), 719u);
  plain(3, 13, {0});
  EXPECT_EQ(books.launch(3, 0, 10, 0, static_cast<KernelFault>(5), 0, &modelled_us),
            Status::kBadRequest);
  EXPECT_EQ(books.launch(3, 1, 10, 0, KernelFault::kNone, 0, &modelled_us), Status::kBadRequest)
      << "no context there";
}

// Kernel time: alone the whole GPU; capped, the rest is idle (a cap, not a reservation); with others
// at work the multiprocessors are divided by what each may use.
TEST_F(FaultsTest, KernelTime) {
  const auto time = [&](SessionId id, uint32_t hundredths, uint64_t now_us) {
    uint64_t modelled_us = 0;
    EXPECT_EQ(books.launch(id, 0, 1000, hundredths, KernelFault::kNone, now_us, &modelled_us),
              Status::kOk);
    return modelled_us;
  };
  plain(1, 11, {0});
  plain(2, 12, {0});
  EXPECT_EQ(time(1, 0, 0), 1000u);
  EXPECT_EQ(time(2, 0, 10), 2000u) << "two at once";
  EXPECT_EQ(time(1, 0, 100000), 1000u) << "alone again";
  EXPECT_EQ(time(1, 5000, 200000), 2000u) << "29 of 58 multiprocessors";
  EXPECT_EQ(time(2, 5000, 200010), 2000u) << "both halves fit side by side";
  EXPECT_EQ(time(2, 5000, 300000), 2000u) << "no more than its cap though it is alone";
  // "Rounded down to hardware granularity": 3 % of 58 multiprocessors is 1.
  EXPECT_EQ(time(1, 300, 400000), 1000u * 10000 / (10000 / 58));
  EXPECT_EQ(time(1, 1, 900000), 1000u * 10000 / (10000 / 58)) << "at least one";
}

// What the server was told for its client holds, whatever the client says.
TEST_F(FaultsTest, ThreadPercentageOfTheServer) {
  server(100, 1000, {0});
  MpsAdmission terms = {};
  terms.percent_hundredths = 5000;
  ASSERT_EQ(books.admit(100, 11, terms), Status::kOk);
  books.add_session(1, 11, Role::kCuda);
  ASSERT_EQ(books.create_context(1, 0, true), Status::kOk);
  uint64_t modelled_us = 0;
  ASSERT_EQ(books.launch(1, 0, 1000, 0, KernelFault::kNone, 0, &modelled_us), Status::kOk);
  EXPECT_EQ(modelled_us, 2000u);
  ASSERT_EQ(books.launch(1, 0, 1000, 2500, KernelFault::kNone, 10000, &modelled_us), Status::kOk);
  EXPECT_EQ(modelled_us, 1000u * 10000 / (14 * 10000 / 58)) << "a context can be narrower";
  ASSERT_EQ(books.launch(1, 0, 1000, 9000, KernelFault::kNone, 90000, &modelled_us), Status::kOk);
  EXPECT_EQ(modelled_us, 2000u) << "but not wider";
}

}  // namespace
}  // namespace gpusim
