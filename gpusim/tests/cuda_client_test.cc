// libcuda.so.1 in client processes, with and without MPS.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/driver_client.h"
#include "common/unix_socket.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

void set_exclusive(const Gpusimd& driver, uint32_t device) {
  DriverClient client;
  ASSERT_EQ(client.connect_to(driver.dir().c_str(), Role::kObserver), Status::kOk);
  Request request = make_request(Op::kSetComputeMode, device);
  request.arg = 3;
  Reply reply;
  ASSERT_EQ(client.call(&request, &reply), Status::kOk);
}

TEST(CudaClient, WithoutADriver) {
  EXPECT_EQ(probe_lines({{"GPUSIM_DIR", "/nowhere"}, {"LD_LIBRARY_PATH", GPUSIM_BIN_DIR}},
                        {"init", "ctx"}),
            "init 100\nctx 3\n");
}

TEST(CudaClient, WholeCard) {
  Gpusimd driver("2xL4");
  EXPECT_EQ(
      probe_lines(driver.environment(), {"init", "count", "info", "ctx", "info", "alloc:22436",
                                         "alloc:22435", "info", "free", "info", "sync"}),
      "init 0\ncount 0 2\ninfo 201 0 0\nctx 0\ninfo 0 22435 22563\nalloc 2\nalloc 0\n"
      "info 0 0 22563\nfree 0\ninfo 0 22435 22563\nsync 0\n");
  EXPECT_EQ(used_mib(driver, 0), 0);
}

TEST(CudaClient, ContentsOfMemory) {
  Gpusimd driver("1xL4");
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx", "roundtrip"}),
            "init 0\nctx 0\nroundtrip 0\n");
}

// cuGetProcAddress: NOT_FOUND = 500, NULL, status 1; a version too low: status 2.
TEST(CudaClient, ProcAddress) {
  Gpusimd driver("1xL4");
  EXPECT_EQ(probe_lines(driver.environment(),
                        {"proc:cuMemAlloc:13000", "proc:cuMemAlloc:3000", "proc:cuNoSuch:13000",
                         "proc:cuGetProcAddress:12000", "proc:cuGetExportTable:13000",
                         "raw:cuGetExportTable", "raw:cuGraphCreate"}),
            "proc 0 0 found\nproc 500 2 null\nproc 500 1 null\nproc 0 0 found\nproc 0 0 found\n"
            "raw 801\nraw 801\n");
}

TEST(CudaClient, VisibleDevices) {
  Gpusimd driver("3xL4");
  const std::string uuid = driver.uuid(1);
  const struct {
    std::string value;
    const char* want;
  } kCases[] = {
      {"0", "init 0\ncount 0 1\n"},      {"2,0", "init 0\ncount 0 2\n"},
      {uuid, "init 0\ncount 0 1\n"},     {uuid.substr(0, 12), "init 0\ncount 0 1\n"},
      {"0,7,1", "init 0\ncount 0 1\n"},  // the first invalid entry ends the list
      {"", "init 100\ncount 3 -1\n"},    {"-1", "init 100\ncount 3 -1\n"},
      {"1,1", "init 100\ncount 3 -1\n"}, {"GPU-", "init 100\ncount 3 -1\n"},
  };
  for (const auto& test : kCases) {
    Environment environment = driver.environment();
    environment["CUDA_VISIBLE_DEVICES"] = test.value;
    EXPECT_EQ(probe_lines(environment, {"init", "count"}), test.want) << test.value;
  }
}

// The limit is met to the MiB, the context included: 1024 - 128 = 896.
TEST(CudaClient, OutOfMemoryExactlyAtTheCeiling) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  EXPECT_EQ(probe_lines(mps.client("0=1024M"), {"init", "ctx", "info", "fill", "info"}),
            "init 0\nctx 0\ninfo 0 896 22563\nfill 2 896\ninfo 0 0 22563\n");
  EXPECT_TRUE(eventually([&] { return used_mib(driver, 0) == 30; })) << "the server's own share";
}

TEST(CudaClient, LimitWithoutContext) {
  Gpusimd driver("1xL4", {"--limit-excludes-context"});
  Mps mps(driver);
  EXPECT_EQ(probe_lines(mps.client("0=1024M"), {"init", "ctx", "fill"}),
            "init 0\nctx 0\nfill 2 1024\n");
}

TEST(CudaClient, TwoClientsAreIsolated) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  const auto first = probe(mps.client("0=512M"), {"init", "ctx", "fill", "hold"});
  const auto second = probe(mps.client("0=256M"), {"init", "ctx", "fill", "hold"});
  for (int i = 0; i < 2; ++i) first->line();
  for (int i = 0; i < 2; ++i) second->line();
  EXPECT_EQ(first->line(), "fill 2 384");
  EXPECT_EQ(second->line(), "fill 2 128");
  EXPECT_EQ(first->line(), "hold");
  EXPECT_EQ(second->line(), "hold");
  EXPECT_EQ(used_mib(driver, 0), 30 + 512 + 256);
  second->kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return used_mib(driver, 0) == 30 + 512; }));
}

// A malformed value is silently no limit; entries of unknown devices are ignored.
TEST(CudaClient, PinnedLimitTexts) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  const std::string uuid = driver.uuid(0);
  const struct {
    std::string text;
    int free_mib;  // after the context's 128
  } kCases[] = {
      {"0=1024M", 896},
      {"0=1G", 896},
      {"0=1024MB", 896},
      {uuid + "=1G", 896},
      {"0=2G,0=1G", 896},  // the later holds
      {"0=2G," + uuid + "=1G", 896},
      {"1=512M,0=1G", 896},  // device 1 is not there
      {"GPU-0=512M,0=1G", 896},
      {"1024M", 22405},  // no "0=": shipped by several projects, and no limit at all
      {"1024MB", 22405},
      {"0=1024", 22405},
      {"0=", 22405},
      {"0=2GB", 1920},
      {"2G", 22405},
      {"-1", 22405},
      {"0=99999999999M", 22405},
      {"GPU-ffffffff-0000-0000-0000-000000000000=1G", 22405},
      {"0=M", 22405},
      {"0=0M", 22405},
      {"0=-1M", 22405},
      {"0=1.5G", 22405},
      {"0:1G", 22405},
      {"x=1G", 22405},
      {"0=99999999999999999999G", 22405},
      {"0=100000M", 22405},  // above the card
      {",,,=", 22405},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(probe_lines(mps.client(test.text), {"init", "ctx", "info"}),
              "init 0\nctx 0\ninfo 0 " + std::to_string(test.free_mib) + " 22563\n")
        << test.text;
  }
}

// default -> server at its start -> client at its start; effective = the lower of server and
// client.
TEST(CudaClient, LimitSnapshots) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  EXPECT_EQ(mps.ask("set_default_device_pinned_mem_limit 0 1000M"), "");
  EXPECT_EQ(mps.ask("set_default_device_pinned_mem_limit 9 5M"), "") << "unknown device: ignored";
  const std::string server = mps.start_server();
  EXPECT_NE(
      mps.server_log().find("Device pinned memory limit for device 0 set to 0x3e800000 bytes"),
      std::string::npos)
      << "the only exact read-back";
  const auto free_mib = [&](const std::string& limit) {
    return probe_lines(mps.client(limit), {"init", "ctx", "info"});
  };
  EXPECT_EQ(free_mib(""), "init 0\nctx 0\ninfo 0 872 22563\n");
  EXPECT_EQ(free_mib("0=600M"), "init 0\nctx 0\ninfo 0 472 22563\n") << "narrows";
  EXPECT_EQ(free_mib("0=2G"), "init 0\nctx 0\ninfo 0 872 22563\n") << "cannot widen";
  const auto early = probe(mps.client(), {"init", "ctx", "hold", "info"});
  for (int i = 0; i < 3; ++i) early->line();
  EXPECT_EQ(mps.ask("set_default_device_pinned_mem_limit 0 300M"), "");
  EXPECT_EQ(free_mib(""), "init 0\nctx 0\ninfo 0 872 22563\n") << "the next server's";
  EXPECT_EQ(mps.ask("set_device_pinned_mem_limit " + server + " 0 2000M"), "");
  EXPECT_EQ(free_mib(""), "init 0\nctx 0\ninfo 0 1872 22563\n") << "may exceed the default";
  early->write("\n");
  EXPECT_EQ(early->line(), "info 0 872 22563") << "existing clients keep theirs";
}

TEST(CudaClient, PipeDirectories) {
  Gpusimd driver("1xL4");
  TempDir folder;
  Environment environment = driver.environment();
  environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=1G";
  // Misspelled: a plain client, without any limit and without an error.
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "misspelled";
  const std::string unlimited = "init 0\nctx 0\ninfo 0 22435 22563\n";
  EXPECT_EQ(probe_lines(environment, {"init", "ctx", "info"}), unlimited);
  // There, but empty.
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder.path();
  EXPECT_EQ(probe_lines(environment, {"init", "ctx", "info"}), unlimited);
  // A socket whose daemon is dead: 805.
  const int fd = listen_seqpacket(folder.path().c_str(), "control", 0666, 1);
  ASSERT_GE(fd, 0);
  close(fd);
  EXPECT_EQ(probe_lines(environment, {"init"}), "init 805\n");
}

// 46 = "all CUDA-capable devices are busy or unavailable".
TEST(CudaClient, ExclusiveProcess) {
  Gpusimd driver("2xL4");
  set_exclusive(driver, 0);
  {
    const auto holder = probe(driver.environment(), {"init", "ctx", "hold"});
    for (int i = 0; i < 3; ++i) holder->line();
    EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx", "ctx:1"}),
              "init 0\nctx 46\nctx 0\n")
        << "the other GPU is in DEFAULT mode";
  }
  ASSERT_TRUE(eventually([&] { return used_mib(driver, 0) == 0; }));
  Mps mps(driver, {{"CUDA_VISIBLE_DEVICES", driver.uuid(0)}});
  mps.start_server();
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx"}), "init 0\nctx 46\n")
      << "the server holds the GPU, also without clients";
  EXPECT_EQ(probe_lines(mps.client("0=1G"), {"init", "count", "ctx", "info"}),
            "init 0\ncount 0 1\nctx 0\ninfo 0 896 22563\n");
}

// The server of a daemon that sees device 1 only: a client's ordinal 0 is that device.
TEST(CudaClient, OrdinalsAreTheServers) {
  Gpusimd driver("2xL4");
  Mps mps(driver, {{"CUDA_VISIBLE_DEVICES", driver.uuid(1)}});
  mps.start_server();
  const auto client = probe(mps.client("0=1G"), {"init", "count", "ctx", "fill", "hold"});
  EXPECT_EQ(client->line(), "init 0");
  EXPECT_EQ(client->line(), "count 0 1");
  EXPECT_EQ(client->line(), "ctx 0");
  EXPECT_EQ(client->line(), "fill 2 896");
  client->line();
  EXPECT_EQ(used_mib(driver, 0), 0);
  EXPECT_EQ(used_mib(driver, 1), 30 + 1024);
}

TEST(CudaClient, DeathFreesMemory) {
  Gpusimd driver("1xL4");
  const auto client = probe(driver.environment(), {"init", "ctx", "alloc:5000", "hold"});
  for (int i = 0; i < 4; ++i) client->line();
  EXPECT_EQ(used_mib(driver, 0), 5128);
  client->kill(SIGKILL);
  client->wait();
  EXPECT_TRUE(eventually([&] { return used_mib(driver, 0) == 0; }));
}

// The child inherited the socket and keeps it open; the memory belongs to the dead parent.
TEST(CudaClient, DeathFreesMemoryThoughAChildHoldsTheSocket) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  for (const Environment& environment : {driver.environment(), mps.client("0=8G")}) {
    const auto client = probe(environment, {"init", "ctx", "alloc:5000", "fork", "hold"});
    for (int i = 0; i < 3; ++i) client->line();
    const std::string forked = client->line();
    ASSERT_EQ(forked.substr(0, 7), "fork 0 ");
    const pid_t child = std::stoi(forked.substr(7));
    client->kill(SIGKILL);
    client->wait();
    EXPECT_TRUE(eventually([&] { return used_mib(driver, 0) == 30; }));
    EXPECT_EQ(::kill(child, 0), 0) << "the child lives";
    EXPECT_TRUE(eventually([&] { return mps.ask("ps").find(GPUSIM_PROBE) == std::string::npos; }))
        << "nor is the dead one a client of the server any more";
    ::kill(child, SIGKILL);
  }
}

// A forked child may not use its parent's driver: 3, not initialized.
TEST(CudaClient, ForkedChildIsNotInitialized) {
  Gpusimd driver("1xL4");
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "childinit", "ctx"}),
            "init 0\nchildinit 3\nctx 0\n");
}

TEST(CudaClient, MaximumOfClients) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  std::vector<std::string> steps = {"init"};
  std::string want = "init 0\n";
  for (int i = 0; i < 48; ++i) {
    steps.push_back("newctx");
    want += "newctx 0\n";
  }
  steps.push_back("newctx");
  EXPECT_EQ(probe_lines(mps.client(), steps), want + "newctx 808\n");
}

// The server dies: its clients get 806, also for calls that touch no memory.
TEST(CudaClient, ServerDeath) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto client = probe(mps.client(), {"init", "ctx", "alloc:100", "hold", "sync", "alloc:1"});
  for (int i = 0; i < 4; ++i) client->line();
  ASSERT_EQ(::kill(std::stoi(server), SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return used_mib(driver, 0) == 0; }));
  client->write("\n");
  EXPECT_EQ(client->line(), "sync 806");
  EXPECT_EQ(client->line(), "alloc 806");
  EXPECT_EQ(mps.console("get_default_active_thread_percentage").exit_code, 0)
      << "the control daemon lives on";
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n") << "and starts another";
}

// Device memory must not cost the container's memory cgroup as much as it says.
TEST(CudaClient, DeviceMemoryIsNotHostMemory) {
  Gpusimd driver("1xL4");
  const auto client = probe(driver.environment(), {"init", "ctx", "alloc:20000", "hold"});
  for (int i = 0; i < 4; ++i) client->line();
  const std::string status = read_file("/proc/" + std::to_string(client->pid()) + "/status");
  const long rss_kib = std::stol(status.substr(status.find("VmRSS:") + 6));
  EXPECT_LT(rss_kib, 50 * 1024);
}

}  // namespace
}  // namespace gpusim::test
