// Many clients: 10,000 that connect and die, directly and through MPS, and eight GPUs with 60 clients
// each. Nothing here depends on how fast the machine is.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "common/driver_client.h"
#include "common/unix_socket.h"
#include "mps/mps_protocol.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

constexpr int kPatienceS = 300;
// No client is silent here, only late: on a machine under load a process may wait its turn for longer
// than the daemon waits for a hello.
constexpr char kNoHelloTimeout[] = "hello_timeout_ms=3600000";

long resident_kib(pid_t pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  return std::stol(status.substr(status.find("VmRSS:") + 6));
}

size_t open_files(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

long voluntary_switches(pid_t pid) {
  const std::string status = read_file("/proc/" + std::to_string(pid) + "/status");
  return std::stol(status.substr(status.find("\nvoluntary_ctxt_switches:") + 25));
}

// One connection for all questions, so that asking opens and closes nothing.
class Observer {
 public:
  explicit Observer(const Gpusimd& driver) {
    EXPECT_TRUE(eventually(
        [&] { return client_.connect_to(driver.dir().c_str(), Role::kObserver) == Status::kOk; }));
  }
  bool is_empty(uint32_t device) {
    DeviceState state = {};
    return client_.get_state(device, &state) == Status::kOk && state.used_bytes == 0;
  }
  long used_mib(uint32_t device) {
    DeviceState state = {};
    if (client_.get_state(device, &state) != Status::kOk) return -1;
    return static_cast<long>(state.used_bytes / kMiB);
  }

 private:
  DriverClient client_;
};

// A machine under load may let a connection time out.
bool connect_patiently(DriverClient* client, const std::string& dir) {
  for (int attempt = 0; attempt < 30; ++attempt) {
    if (client->connect_to(dir.c_str(), Role::kCuda) == Status::kOk) return true;
  }
  return false;
}

// Takes what a client can take and dies with it.
[[noreturn]] void live_and_die(const std::string& dir, const std::string& pipe) {
  DriverClient client;
  bool well = connect_patiently(&client, dir);
  if (!pipe.empty()) {
    const int control = connect_seqpacket(pipe.c_str(), mps::kControlSocket, kPatienceS);
    mps::ClientHello hello = {};
    hello.magic = mps::kMpsMagic;
    hello.devices = 1;
    hello.driver_pid = client.own_pid();
    mps::ClientWelcome welcome = {};
    int server = -1;
    well = well && control >= 0 && send_message(control, &hello, sizeof hello) &&
           receive_message_with_fd(control, &welcome, sizeof welcome, &server) &&
           welcome.result == mps::kMpsOk;
  }
  Request request = make_request(Op::kContextCreate, 0);
  request.flags = pipe.empty() ? 0 : kViaMps;
  Reply reply;
  well = well && client.call(&request, &reply) == Status::kOk;
  request = make_request(Op::kAllocate, 0);
  request.arg = kMiB;
  well = well && client.call(&request, &reply) == Status::kOk;
  _exit(well ? 0 : 1);
}

// Some at a time, and the next when the end of all has been seen: until then the dead hold client slots.
void run_clients(const Gpusimd& driver, int count, const std::function<bool()>& rests,
                 const std::string& pipe = "") {
  constexpr int kAtATime = 20;
  for (int started = 0; started < count;) {
    std::vector<pid_t> children;
    for (int i = 0; i < kAtATime && started < count; ++i, ++started) {
      children.push_back(fork());
      ASSERT_GE(children.back(), 0);
      if (children.back() == 0) live_and_die(driver.dir(), pipe);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0) << "one of the clients up to " << started;
    }
    ASSERT_TRUE(eventually(rests, kPatienceS)) << "after client " << started;
  }
}

TEST(Scale, TenThousandClientsConnectAndDie) {
  Gpusimd driver("1xL4");
  Observer observer(driver);
  const pid_t pid = driver.process().pid();
  const auto rests = [&] { return observer.is_empty(0); };
  run_clients(driver, 500, rests);  // whatever grows once has grown
  const long before_kib = resident_kib(pid);
  const size_t files = open_files(pid);
  run_clients(driver, 9500, rests);
  EXPECT_EQ(open_files(pid), files);
  EXPECT_LT(resident_kib(pid), before_kib + 512);
}

// The same through MPS: nothing stays in gpusimd, the daemon or its server, nor in their lists.
TEST(Scale, TenThousandClientsThroughMps) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", kNoHelloTimeout}});
  const std::string server = mps.start_server();
  Observer observer(driver);
  const long idle_mib = observer.used_mib(0);
  const pid_t pids[] = {driver.process().pid(), mps.daemon().pid(), std::stoi(server)};
  const auto rests = [&] {
    return observer.used_mib(0) == idle_mib && mps.ask("get_client_list " + server).empty();
  };
  run_clients(driver, 500, rests, mps.pipe());
  std::vector<size_t> files;
  std::vector<long> resident;
  for (const pid_t pid : pids) {
    files.push_back(open_files(pid));
    resident.push_back(resident_kib(pid));
  }
  run_clients(driver, 9500, rests, mps.pipe());
  for (size_t i = 0; i < files.size(); ++i) {
    // The daemon may not have seen yet that the last console has gone.
    EXPECT_TRUE(eventually([&] { return open_files(pids[i]) <= files[i]; }, kPatienceS)) << i;
    EXPECT_LT(resident_kib(pids[i]), resident[i] + 512) << i;
  }
  EXPECT_EQ(mps.ask("get_server_list"), server + "\n") << "the same server";
}

// Eight GPUs, a daemon for each, 60 clients each: real processes through libcuda and MPS, the most
// that CUDA 13.1 admits. At rest nothing of it does anything: no timer, no poll.
TEST(Scale, EightGpusWithSixtyMpsClientsEach) {
  constexpr uint32_t kGpus = 8;
  constexpr int kClients = 60;
  // Three pipes a client.
  rlimit files = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 2000) GTEST_SKIP() << "needs 2000 descriptors";
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);

  Gpusimd driver("8xH100", {"--driver", "590"});
  std::vector<std::unique_ptr<Mps>> daemons;
  std::vector<std::string> servers;
  for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    daemons.push_back(std::make_unique<Mps>(
        driver, Environment{{"CUDA_VISIBLE_DEVICES", driver.uuid(static_cast<int>(gpu))},
                            {"GPUSIM_MPS", kNoHelloTimeout}}));
    servers.push_back(daemons.back()->start_server());
  }
  std::vector<std::unique_ptr<Process>> clients;
  for (const auto& daemon : daemons) {
    for (int i = 0; i < kClients; ++i) {
      clients.push_back(probe(daemon->client("0=1200M"), {"init", "ctx", "alloc:1000", "hold"}));
    }
  }
  for (const auto& client : clients) {
    std::string first;
    ASSERT_TRUE(eventually([&] { return !(first = client->line()).empty(); }, kPatienceS));
    ASSERT_EQ(first, "init 0");
    EXPECT_EQ(client->line(), "ctx 0");
    EXPECT_EQ(client->line(), "alloc 0");
    EXPECT_EQ(client->line(), "hold");
  }
  Observer observer(driver);
  std::vector<pid_t> idle = {driver.process().pid()};
  for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    EXPECT_EQ(observer.used_mib(gpu), kClients * 1128 + 30);
    const std::string list = daemons[gpu]->ask("get_client_list " + servers[gpu]);
    EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), kClients);
    EXPECT_EQ(probe_lines(daemons[gpu]->client(), {"init", "ctx"}), "init 0\nctx 808\n");
    idle.push_back(std::stoi(servers[gpu]));
    if (gpu != 0) idle.push_back(daemons[gpu]->daemon().pid());
  }
  // While one daemon is asked 100 times, nobody else wakes up: what wakes without being asked would
  // show, however long or short this takes.
  EXPECT_TRUE(eventually([&] {
    std::vector<long> before;
    for (const pid_t pid : idle) before.push_back(voluntary_switches(pid));
    for (int i = 0; i < 100; ++i) daemons[0]->ask("get_server_status " + servers[0]);
    for (size_t i = 0; i < idle.size(); ++i) {
      if (voluntary_switches(idle[i]) != before[i]) return false;  // it was not at rest yet
    }
    return true;
  }));
  clients.clear();
  for (uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    EXPECT_TRUE(eventually([&] { return observer.used_mib(gpu) == 30; }, kPatienceS));
  }
}

}  // namespace
}  // namespace gpusim::test
