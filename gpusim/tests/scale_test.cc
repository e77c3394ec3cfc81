// Many clients: 10,000 that connect and die, and eight GPUs with 60 clients each.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/driver_client.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

long resident_kib(pid_t pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  return std::stol(status.substr(status.find("VmRSS:") + 6));
}

size_t open_files(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

// Takes what a client can take and dies with it.
void live_and_die(const std::string& dir) {
  DriverClient client;
  bool well = client.connect_to(dir.c_str(), Role::kCuda) == Status::kOk;
  Request request = make_request(Op::kContextCreate, 0);
  Reply reply;
  well = well && client.call(&request, &reply) == Status::kOk;
  request = make_request(Op::kAllocate, 0);
  request.arg = kMiB;
  well = well && client.call(&request, &reply) == Status::kOk;
  _exit(well ? 0 : 1);
}

void run_clients(const Gpusimd& driver, int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) live_and_die(driver.dir());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "client " << i;
  }
  ASSERT_TRUE(eventually([&] { return used_mib(driver, 0) == 0; }));
}

TEST(Scale, TenThousandClientsConnectAndDie) {
  Gpusimd driver("1xL4");
  const pid_t pid = driver.process().pid();
  run_clients(driver, 500);  // whatever grows once has grown
  const long before_kib = resident_kib(pid);
  const size_t files = open_files(pid);
  run_clients(driver, 9500);
  EXPECT_EQ(open_files(pid), files);
  EXPECT_LT(resident_kib(pid), before_kib + 512);
}

TEST(Scale, EightGpusWithSixtyClientsEach) {
  constexpr uint32_t kGpus = 8;
  constexpr int kClients = 60;
  Gpusimd driver("8xH100", {"--driver", "590"});
  // Three pipes a client.
  rlimit files = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 2000) GTEST_SKIP() << "needs 2000 descriptors";
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  std::vector<std::unique_ptr<Process>> clients;
  for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    for (int i = 0; i < kClients; ++i) {
      clients.push_back(probe(driver.environment(),
                              {"init", "ctx:" + std::to_string(gpu), "alloc:1000", "hold"}));
    }
  }
  for (const auto& client : clients) {
    EXPECT_EQ(client->line(), "init 0");
    EXPECT_EQ(client->line(), "ctx 0");
    EXPECT_EQ(client->line(), "alloc 0");
  }
  for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    EXPECT_EQ(used_mib(driver, gpu), kClients * 1128);
  }
  // At rest it does nothing at all: no timer, no poll.
  const auto switches = [&] {
    const std::string status =
        read_file("/proc/" + std::to_string(driver.process().pid()) + "/status");
    return std::stol(status.substr(status.find("\nvoluntary_ctxt_switches:") + 25));
  };
  const long before = switches();
  EXPECT_EQ(used_mib(driver, 0), kClients * 1128);
  EXPECT_LE(switches() - before, 8) << "one connection, two requests";
  clients.clear();
  EXPECT_TRUE(eventually([&] { return used_mib(driver, 7) == 0; }));
}

}  // namespace
}  // namespace gpusim::test
