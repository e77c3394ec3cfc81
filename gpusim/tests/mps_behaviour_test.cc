// What the MPS side does beyond its console's words: time, users, collisions, faults on demand.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/driver_client.h"
#include "common/unix_socket.h"
#include "mps/mps_protocol.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

constexpr char kNobody[] = "65534";

// A probe of another user; needs root.
std::unique_ptr<Process> probe_as(const std::string& uid, const Environment& environment,
                                  std::vector<std::string> steps) {
  steps.insert(steps.begin(), {"/usr/bin/setpriv", "--reuid=" + uid, "--clear-groups",
                               "--inh-caps=-all", GPUSIM_PROBE});
  return std::make_unique<Process>(steps, environment);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

char state_of(const std::string& pid) {
  const std::string stat = read_file("/proc/" + pid + "/stat");
  const size_t at = stat.rfind(')');
  return at == std::string::npos ? '?' : stat[at + 2];
}

// Sessions at one daemon collide: 4 parallel readers, 202 of 800 snapshots failed (sglang-omni
// PR 2101). The one that was there goes on; the other ends with an error.
TEST(MpsCollision, TheSecondSessionFails) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "collide_ms=3600000"}});
  Process first({binary("nvidia-cuda-mps-control")}, mps.environment());
  first.write("get_default_active_thread_percentage\n");
  EXPECT_EQ(first.line(), "100.0");
  const Outcome second = mps.console("get_server_list");
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.output, "");
  first.write("set_default_active_thread_percentage 40\n");
  EXPECT_EQ(first.line(), "40.0");
  first.close_input();
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(mps.ask("get_default_active_thread_percentage"), "40.0\n") << "one after the other";
}

// A prompt at which nobody types is in nobody's way.
TEST(MpsCollision, QuietSession) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "collide_ms=1"}});
  Process first({binary("nvidia-cuda-mps-control")}, mps.environment());
  first.write("get_default_active_thread_percentage\n");
  EXPECT_EQ(first.line(), "100.0");
  EXPECT_TRUE(eventually([&] { return mps.console("get_server_list").exit_code == 0; }));
  first.write("get_default_active_thread_percentage\n");
  EXPECT_EQ(first.line(), "100.0");
}

TEST(MpsCollision, Switch) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "collide=off"}});
  Process first({binary("nvidia-cuda-mps-control")}, mps.environment());
  first.write("get_default_active_thread_percentage\n");
  EXPECT_EQ(first.line(), "100.0");
  EXPECT_EQ(mps.ask("get_default_active_thread_percentage"), "100.0\n");
}

// "no return = daemon wedged" (amazon-ecs-agent PR 5095): it takes connections and says nothing.
TEST(MpsFaults, HangAndResume) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  EXPECT_EQ(mps.ask("gpusim hang"), "");
  EXPECT_NE(mps.ask("gpusim show").find("state=hung\n"), std::string::npos);
  Process console({binary("nvidia-cuda-mps-control")}, mps.environment());
  console.write("get_default_active_thread_percentage");
  console.close_input();
  const auto client = probe(mps.client(), {"init"});
  mps.daemon().kill(SIGTERM);
  EXPECT_EQ(console.wait(1), -1);
  EXPECT_EQ(client->wait(1), -1);
  EXPECT_EQ(mps.daemon().wait(1), -1) << "wedged: SIGTERM does not help, SIGKILL would";
  EXPECT_EQ(mps.ask("gpusim resume"), "");
  EXPECT_EQ(console.wait(), 0);
  EXPECT_EQ(mps.daemon().wait(), 0) << "then it obeys the signal";
}

TEST(MpsFaults, HungServer) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  EXPECT_EQ(mps.ask("gpusim hang-server"), "");
  EXPECT_EQ(mps.ask("get_server_list"), server + "\n") << "the daemon answers on";
  const auto client = probe(mps.client(), {"init"});
  EXPECT_EQ(client->wait(1), -1);
  EXPECT_EQ(mps.ask("gpusim resume"), "");
  EXPECT_EQ(client->line(), "init 0");
  EXPECT_EQ(mps.ask("gpusim kill-server"), "");
  EXPECT_TRUE(eventually([&] { return mps.ask("get_server_list").empty(); }));
}

TEST(MpsFaults, SlowConsole) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  EXPECT_EQ(mps.ask("gpusim slow 1500"), "");
  Process console({binary("nvidia-cuda-mps-control")}, mps.environment());
  console.write("get_default_active_thread_percentage");
  console.close_input();
  EXPECT_EQ(console.wait(1), -1);
  EXPECT_EQ(console.wait(), 0);
  EXPECT_EQ(console.output(), "100.0\n") << "late, but the same";
}

TEST(MpsFaults, BadCommands) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const struct {
    std::string command;
    std::string want;
  } kCases[] = {
      {"gpusim slow x", "slow: slow_ms is a whole number up to 3600000, not 'x'\n"},
      {"gpusim set collide maybe", "set: collide is on, off or auto, not 'maybe'\n"},
      {"gpusim set nothing 1", "set: there is no key 'nothing'\n"},
      {"gpusim set kill_wedges_percent 101",
       "set: kill_wedges_percent is a whole number up to 100, not '101'\n"},
      {"gpusim dance",
       "gpusim hang | hang-server | kill-server | resume | slow MS | set KEY VALUE | show\n"},
      {"gpusim", "Invalid argument\n"},
  };
  for (const auto& test : kCases) EXPECT_EQ(mps.ask(test.command), test.want) << test.command;
}

// mps.conf reaches daemons that others start; the environment wins; what is wrong is skipped and
// reported in control.log.
TEST(MpsSettings, FileAndEnvironment) {
  Gpusimd driver("1xL4");
  std::ofstream(driver.dir() + "/mps.conf") << "# comment\nslow_ms=7\ncollide = off # why\nx=1\n";
  Mps mps(driver, {{"GPUSIM_MPS", "slow_ms=3,initializing_ms=1"}});
  const std::string shown = mps.ask("gpusim show");
  for (const char* line : {"slow_ms=3\n", "collide=off\n", "initializing_ms=1\n"}) {
    EXPECT_NE(shown.find(line), std::string::npos) << line;
  }
  EXPECT_NE(mps.control_log().find("mps.conf: there is no key 'x'"), std::string::npos);
}

// INITIALIZING -> ACTIVE (MPS documentation, architecture); a client waits in the pending list.
TEST(MpsServer, InitializingTakesTime) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "initializing_ms=1500"}});
  EXPECT_EQ(mps.ask("start_server -uid 0"), "");
  std::string server = mps.ask("get_server_list");
  server.pop_back();
  EXPECT_EQ(mps.ask("get_server_status " + server), "INITIALIZING\n");
  const auto client = probe(mps.client(), {"init"});
  EXPECT_EQ(client->wait(1), -1) << "pending";
  EXPECT_EQ(client->line(), "init 0");
  EXPECT_EQ(mps.ask("get_server_status " + server), "ACTIVE\n");
  EXPECT_EQ(mps.ask("shutdown_server " + server), "");
  // One that is told to end while it is INITIALIZING ends at once, in good order.
  EXPECT_EQ(mps.ask("start_server -uid 0"), "");
  EXPECT_EQ(mps.console("quit").exit_code, 0);
  EXPECT_EQ(mps.control_log().find("exited with status 1"), std::string::npos);
}

// The end of a server reaches the daemon twice, by SIGCHLD and by its channel, here in one turn of its
// loop (the sanitizers see what is touched after that).
TEST(MpsServer, DiesWhileTheDaemonLooksAway) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  for (int round = 0; round < 3; ++round) {
    const std::string server = mps.start_server();
    mps.daemon().kill(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(std::to_string(mps.daemon().pid())) == 'T'; }));
    ASSERT_EQ(::kill(std::stoi(server), SIGKILL), 0);
    ASSERT_TRUE(eventually([&] { return state_of(server) == 'Z'; }));
    mps.daemon().kill(SIGCONT);
    EXPECT_TRUE(eventually([&] { return mps.ask("get_server_list").empty(); }));
  }
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n");
}

// A server that cannot start is tried again 5 times, then the client gets 805 (bottlerocket issue
// 4673).
TEST(MpsServer, FiveRetriesThen805) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_DIR", "/nowhere"}});
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 805\n");
  EXPECT_EQ(count_of(mps.control_log(), "Starting new server"), 6u);
  EXPECT_EQ(count_of(mps.control_log(), "Server encountered a fatal exception"), 6u);
}

// The server runs as its client's user and opens `log` and `control` by path: every folder on the
// way must be open to that user (bottlerocket issue 4673: /run/nvidia was 0700).
TEST(MpsServer, PathMustBeOpenToItsUser) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  Gpusimd driver("1xL4");
  TempDir folder;
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "pipe";
  environment["CUDA_MPS_LOG_DIRECTORY"] = folder / "log";
  Process daemon({binary("nvidia-cuda-mps-control"), "-f"}, environment);
  ASSERT_TRUE(eventually([&] { return exists(folder / "pipe/nvidia-cuda-mps-control.pid"); }));
  const auto console = [&](const std::string& command) {
    return run({binary("nvidia-cuda-mps-control")}, environment, command).output;
  };
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
  console(std::string("start_server -uid ") + kNobody);
  EXPECT_TRUE(eventually([&] {
    return read_file(folder / "log/control.log").find("exited with status 1") != std::string::npos;
  }));
  EXPECT_NE(read_file(folder / "log/server.log").find("Permission denied"), std::string::npos);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  console(std::string("start_server -uid ") + kNobody);
  EXPECT_TRUE(eventually([&] { return !console("get_server_list").empty(); }));
}

// Single-user: another user's client waits until the present server's clients are gone, then the
// server is replaced (nebuly nos issue 19: one wrong uid blocked everyone).
TEST(MpsUsers, AnotherUserWaits) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  Gpusimd driver("1xL4");
  Mps mps(driver, {}, {});
  const auto first = probe(mps.client(), {"init", "ctx", "hold"});
  for (int i = 0; i < 3; ++i) first->line();
  const std::string server = mps.ask("get_server_list");
  const auto other = probe_as(kNobody, mps.client(), {"init", "ctx", "hold"});
  EXPECT_EQ(other->wait(1), -1);
  EXPECT_EQ(mps.ask("get_server_list"), server) << "only one server is alive at a time";
  first->close_input();
  EXPECT_EQ(other->line(), "init 0");
  EXPECT_EQ(other->line(), "ctx 0");
  const std::string second = mps.ask("get_server_list");
  EXPECT_NE(second, server);
  EXPECT_NE(mps.control_log().find("Starting new server " + second.substr(0, second.size() - 1) +
                                   " for user " + kNobody),
            std::string::npos);
  const std::string status = read_file("/proc/" + second.substr(0, second.size() - 1) + "/status");
  EXPECT_NE(status.find(std::string("Uid:\t") + kNobody), std::string::npos) << "setuid";
}

TEST(MpsUsers, MultiuserServesAll) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const auto first = probe(mps.client(), {"init", "ctx", "hold"});
  for (int i = 0; i < 3; ++i) first->line();
  const auto other = probe_as(kNobody, mps.client(), {"init", "ctx"});
  EXPECT_EQ(other->line(), "init 0");
  EXPECT_EQ(other->line(), "ctx 0");
}

// 800: a daemon that is not root's serves its own user only.
TEST(MpsUsers, ForeignDaemonIsNotPermitted) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  Gpusimd driver("1xL4");
  TempDir folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "pipe";
  environment["CUDA_MPS_LOG_DIRECTORY"] = folder / "log";
  Process daemon({"/usr/bin/setpriv", std::string("--reuid=") + kNobody, "--clear-groups",
                  "--inh-caps=-all", binary("nvidia-cuda-mps-control"), "-f"},
                 environment);
  ASSERT_TRUE(eventually([&] { return exists(folder / "pipe/nvidia-cuda-mps-control.pid"); }));
  EXPECT_EQ(probe_lines(environment, {"init"}), "init 800\n");
  const auto own = probe_as(kNobody, environment, {"init", "ctx"});
  EXPECT_EQ(own->line(), "init 0");
  EXPECT_EQ(own->line(), "ctx 0");
}

// 470 and 535: a named region "/cuda.shm.<uid>.<server pid hex>.1"; without the same /dev/shm, 805
// (nvidia-container-toolkit issue 714).
TEST(MpsSharedMemory, Named) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "named_memory=on"}});
  const std::string server = mps.start_server();
  char name[64];
  snprintf(name, sizeof name, "/cuda.shm.%x.%x.1", getuid(),
           static_cast<unsigned>(std::stoi(server)));
  EXPECT_NE(mps.server_log().find(std::string("Created named shared memory region ") + name),
            std::string::npos);
  const std::string path = std::string("/dev/shm") + name;
  EXPECT_EQ(mode_of(path), S_IFREG | 0666u);
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n");
  // What a container with a /dev/shm of its own sees.
  ASSERT_EQ(rename(path.c_str(), (path + ".elsewhere").c_str()), 0);
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 805\n");
  ASSERT_EQ(rename((path + ".elsewhere").c_str(), path.c_str()), 0);
  EXPECT_EQ(mps.ask("shutdown_server " + server), "");
  EXPECT_FALSE(exists(path)) << "removed at an orderly end";
}

TEST(MpsSharedMemory, Anonymous) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  EXPECT_NE(mps.server_log().find("Created anonymous shared memory region mps.shm." +
                                  std::to_string(getuid()) + "." + server),
            std::string::npos);
}

// Both wordings of server.log's client lines (MPS documentation, appendix on logging).
TEST(MpsLog, OldWording) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "old_wording=on"}});
  mps.start_server();
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 0\n");
  EXPECT_NE(mps.server_log().find("] Received new client request\n"), std::string::npos);
}

// Some 535 drivers do not apply defaults that are keyed by UUID (k8s-device-plugin PR 572).
TEST(MpsLimits, UuidDefaultsSwitch) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "uuid_defaults=off"}});
  EXPECT_EQ(mps.ask("set_default_device_pinned_mem_limit " + driver.uuid(0) + " 1G"), "");
  mps.start_server();
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx", "info"}),
            "init 0\nctx 0\ninfo 0 22405 22563\n");
}

// UUID-keyed and ordinal-keyed limits can both exist; the one set last wins when a server starts
// (MPS documentation, v2 interface).
TEST(MpsLimits, LastKeyWins) {
  Gpusimd driver("1xL4");
  const std::string uuid = driver.uuid(0);
  const struct {
    std::vector<std::string> keys;
    const char* free_mib;
  } kCases[] = {
      {{"0 1G", uuid + " 2G"}, "1920"},
      {{uuid + " 2G", "0 1G"}, "896"},
      {{"0 1G", uuid + " 2G", "0 3G"}, "2944"},
      {{"0 1G", "1 2G", "GPU-00000000 5M"}, "896"},
  };
  for (const auto& test : kCases) {
    Mps mps(driver);
    for (const std::string& key : test.keys) {
      EXPECT_EQ(mps.ask("set_default_device_pinned_mem_limit " + key), "");
    }
    mps.start_server();
    EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx", "info"}),
              std::string("init 0\nctx 0\ninfo 0 ") + test.free_mib + " 22563\n")
        << test.keys.back();
    EXPECT_EQ(mps.console("quit").exit_code, 0);
  }
}

TEST(MpsClients, TerminateThatFails) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto client = probe(mps.client(), {"init", "ctx", "hold", "sync"});
  for (int i = 0; i < 3; ++i) client->line();
  EXPECT_EQ(mps.ask("gpusim set terminate off"), "");
  EXPECT_EQ(mps.ask("terminate_client " + server + " " + std::to_string(client->pid())), "805\n");
  client->write("\n");
  EXPECT_EQ(client->line(), "sync 0");
}

// A signal death with work outstanding may hang the server; after terminate_client SIGKILL is safe,
// and so is an orderly end (MPS documentation).
TEST(MpsClients, KillMayWedgeTheServer) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "kill_wedges_percent=100"}});
  const std::string server = mps.start_server();
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n");
  const auto terminated = probe(mps.client(), {"init", "ctx", "hold"});
  for (int i = 0; i < 3; ++i) terminated->line();
  const std::string pid = std::to_string(terminated->pid());
  EXPECT_EQ(mps.ask("terminate_client " + server + " " + pid), "0\n");
  terminated->kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return mps.ask("get_client_list " + server).empty(); }));
  EXPECT_NE(state_of(server), 'T');
  const auto killed = probe(mps.client(), {"init", "ctx", "hold"});
  for (int i = 0; i < 3; ++i) killed->line();
  killed->kill(SIGKILL);
  EXPECT_TRUE(eventually([&] { return state_of(server) == 'T'; }));
}

// terminate_client takes pids of the daemon's PID namespace: a container's own pid names nobody; and
// ps shows by the namespace's inode to which container a client belongs (MPS documentation).
TEST(MpsClients, PidsAreTheDaemonsNamespaces) {
  if (run({"/usr/bin/unshare", "--pid", "--fork", "true"}).exit_code != 0) {
    GTEST_SKIP() << "cannot make PID namespaces";
  }
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  Process contained({"/usr/bin/unshare", "--pid", "--fork", "--kill-child", GPUSIM_PROBE, "init",
                     "ctx", "hold", "sync"},
                    mps.client());
  for (int i = 0; i < 3; ++i) EXPECT_NE(contained.line(), "");
  std::string host_pid = mps.ask("get_client_list " + server);
  ASSERT_NE(host_pid, "");
  host_pid.pop_back();
  char target[64] = {};
  ASSERT_GT(readlink(("/proc/" + host_pid + "/ns/pid").c_str(), target, sizeof target - 1), 0);
  const std::string ns = std::string(target + 5, strlen(target) - 6);
  EXPECT_NE(mps.ask("ps").find(" " + ns + " "), std::string::npos);
  EXPECT_EQ(mps.ask("terminate_client " + server + " 1"), "Client not found\n") << "its own pid";
  EXPECT_EQ(mps.ask("terminate_client " + server + " " + host_pid), "0\n");
  contained.write("\n");
  EXPECT_EQ(contained.line(), "sync 810");
}

// Clients that come and go leave nothing behind in daemon and server.
TEST(MpsClients, ThousandsLeaveNothing) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto descriptors = [](const std::string& pid) {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + pid + "/fd")) {
      count += entry.path().empty() ? 0 : 1;
    }
    return count;
  };
  const std::string daemon = std::to_string(mps.daemon().pid());
  const size_t daemon_before = descriptors(daemon);
  const size_t server_before = descriptors(server);
  mps::ClientHello hello = {};
  hello.magic = mps::kMpsMagic;
  hello.devices = 1;
  for (int i = 0; i < 2000; ++i) {
    const int fd = connect_seqpacket(mps.pipe().c_str(), "control", 20);
    ASSERT_GE(fd, 0);
    ASSERT_TRUE(send_message(fd, &hello, sizeof hello));
    mps::ClientWelcome welcome;
    if (i % 3 != 0) {  // every third goes before it is answered
      ASSERT_TRUE(receive_message(fd, &welcome, sizeof welcome));
    }
    close(fd);
  }
  EXPECT_TRUE(eventually([&] { return mps.ask("get_client_list " + server).empty(); }));
  EXPECT_TRUE(eventually([&] {
    return descriptors(daemon) <= daemon_before && descriptors(server) <= server_before;
  })) << descriptors(daemon)
      << " " << daemon_before << " " << descriptors(server) << " " << server_before;
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n");
}

// EXCLUSIVE_PROCESS: who is there first keeps the GPU; here a plain process, so that no server can
// start (k8s-device-plugin issues 647, 1118: 46 the other way round).
TEST(MpsServer, ForeignProcessOnAnExclusiveGpu) {
  Gpusimd driver("1xL4");
  DriverClient observer;
  ASSERT_EQ(observer.connect_to(driver.dir().c_str(), Role::kObserver), Status::kOk);
  Request request = make_request(Op::kSetComputeMode, 0);
  request.arg = static_cast<uint64_t>(ComputeMode::kExclusiveProcess);
  Reply reply;
  ASSERT_EQ(observer.call(&request, &reply), Status::kOk);
  const auto foreign = probe(driver.environment(), {"init", "ctx", "hold"});
  for (int i = 0; i < 3; ++i) foreign->line();
  Mps mps(driver);
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 805\n");
  EXPECT_NE(mps.server_log().find("all CUDA-capable devices are busy or unavailable"),
            std::string::npos);
  foreign->close_input();
  EXPECT_EQ(foreign->wait(), 0);
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n");
}

// Client contexts of a GPU: 16 before Volta, 48, and 60 from CUDA 13.1 on; then 808.
TEST(MpsServer, ClientSlots) {
  const struct {
    const char* gpu;
    const char* driver;
    int slots;
  } kCases[] = {{"1xP4", "535", 16}, {"1xL4", "580", 48}, {"1xL4", "590", 60}};
  for (const auto& test : kCases) {
    Gpusimd driver(test.gpu, {"--driver", test.driver});
    Mps mps(driver, {}, {});
    std::vector<std::string> steps = {"init"};
    std::string want = "init 0\n";
    for (int i = 0; i <= test.slots; ++i) {
      steps.emplace_back("newctx");
      want += i < test.slots ? "newctx 0\n" : "newctx 808\n";
    }
    EXPECT_EQ(probe_lines(mps.client(), steps), want) << test.driver;
  }
}

// The handshake as sandboxes see it: SOCK_SEQPACKET, a connection to the server by SCM_RIGHTS with
// SO_PASSCRED set, after which `control` has done its part (gVisor issues 14594, 14595).
TEST(MpsClients, ConnectionToTheServerComesByScmRights) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const int control = connect_seqpacket(mps.pipe().c_str(), "control", 20);
  ASSERT_GE(control, 0);
  mps::ClientHello hello = {};
  hello.magic = mps::kMpsMagic;
  hello.devices = 1;
  ASSERT_TRUE(send_message(control, &hello, sizeof hello));
  mps::ClientWelcome welcome;
  int fd = -1;
  ASSERT_TRUE(receive_message_with_fd(control, &welcome, sizeof welcome, &fd));
  EXPECT_EQ(welcome.result, 0);
  EXPECT_EQ(std::to_string(welcome.server_pid), server);
  ASSERT_GE(fd, 0);
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size), 0);
  EXPECT_EQ(value, SOCK_SEQPACKET);
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_PASSCRED, &value, &size), 0);
  EXPECT_EQ(value, 1);
  char byte;
  EXPECT_EQ(recv(control, &byte, 1, 0), 0) << "closed by the other side";
  EXPECT_EQ(mps.ask("get_client_list " + server), std::to_string(getpid()) + "\n");
  close(fd);
  EXPECT_TRUE(eventually([&] { return mps.ask("get_client_list " + server).empty(); }));
  close(control);
}

// One daemon per MIG device (MPS documentation; k8s DRA driver): its server and clients have that
// device and no other, also without a variable on the client.
TEST(MpsMig, OneDaemonPerMigDevice) {
  Gpusimd driver("1xA100-40:3g.20gb+1g.5gb");
  DriverClient client;
  ASSERT_EQ(client.connect_to(driver.dir().c_str(), Role::kObserver), Status::kOk);
  std::vector<std::string> mig;
  for (uint32_t i = 0; i < client.device_count(); ++i) {
    DeviceInfo info;
    ASSERT_EQ(client.get_device(i, &info), Status::kOk);
    if (info.kind == DeviceKind::kMig) mig.emplace_back(info.uuid);
  }
  ASSERT_EQ(mig.size(), 2u);
  std::vector<std::string> totals;
  for (const std::string& uuid : mig) {
    Mps mps(driver, {{"CUDA_VISIBLE_DEVICES", uuid}});
    mps.start_server();
    const std::string lines = probe_lines(mps.client(), {"init", "count", "ctx", "info"});
    EXPECT_EQ(lines.substr(0, lines.find("info")), "init 0\ncount 0 1\nctx 0\n");
    totals.push_back(lines.substr(lines.rfind(' ') + 1));
  }
  EXPECT_NE(totals[0], totals[1]);
}

// A connection that says nothing is dropped after a while, and a crowd of them keeps nobody out.
TEST(MpsBadInput, SilentClients) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_MPS", "hello_timeout_ms=200"}});
  const int fd = connect_seqpacket(mps.pipe().c_str(), "control", 20);
  ASSERT_GE(fd, 0);
  char answer[8];
  EXPECT_EQ(recv(fd, answer, sizeof answer, 0), 0);
  close(fd);
  EXPECT_NE(mps.control_log().find("User did not send valid credentials"), std::string::npos);
  EXPECT_EQ(mps.ask("gpusim set hello_timeout_ms 3600000"), "");
  std::vector<int> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(connect_seqpacket(mps.pipe().c_str(), "control", 20));
    ASSERT_GE(crowd.back(), 0);
  }
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 0\n");
  for (const int silent : crowd) close(silent);
}

// Logs on a full disk lose lines, nothing else.
TEST(MpsBadInput, FullDisk) {
  Gpusimd driver("1xL4");
  TempDir folder;
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "pipe";
  environment["CUDA_MPS_LOG_DIRECTORY"] = folder.path();
  for (const char* name : {"control.log", "server.log"}) {
    ASSERT_EQ(symlink("/dev/full", (folder / name).c_str()), 0);
  }
  Process daemon({binary("nvidia-cuda-mps-control"), "-f", "-M"}, environment);
  ASSERT_TRUE(eventually([&] { return exists(folder / "pipe/nvidia-cuda-mps-control.pid"); }));
  environment.erase("CUDA_MPS_LOG_DIRECTORY");
  EXPECT_EQ(probe_lines(environment, {"init", "ctx"}), "init 0\nctx 0\n");
}

// The second daemon on a directory gives up and leaves the first one's files alone.
TEST(MpsBadInput, TwoDaemonsOnOneDirectory) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  for (const char* flag : {"-f", "-d"}) {
    const Outcome second = run({binary("nvidia-cuda-mps-control"), flag}, mps.environment());
    EXPECT_EQ(second.exit_code, 1) << flag;
    EXPECT_EQ(second.errors, "An instance of this daemon is already running\n") << flag;
  }
  EXPECT_EQ(read_file(mps.pipe() + "/nvidia-cuda-mps-control.pid"),
            std::to_string(mps.daemon().pid()) + "\n");
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 0\n");
}

// The daemon's own environment gives the defaults; what is malformed there is no limit, silently.
TEST(MpsBadInput, DaemonEnvironment) {
  Gpusimd driver("1xL4");
  const struct {
    std::string limit;
    std::string percent;
    const char* want_limit;
    const char* want_percent;
  } kCases[] = {
      {"0=2GB", "25", "2G\n", "25.0\n"},
      {"2G", "x", "", "100.0\n"},
      {"0=", "0", "", "100.0\n"},
      {"-1", "-1", "", "100.0\n"},
      {"0=-1M", "101", "", "100.0\n"},
      {"0=99999999999M", "33.3", "97656249G\n", "33.3\n"},
      {"0=99999999999999999999M", "1e1", "", "100.0\n"},
      {std::string(200, 'k') + "=1G,0=1G", "", "1G\n", "100.0\n"},
  };
  for (const auto& test : kCases) {
    Mps mps(driver, {{"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", test.limit},
                     {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", test.percent}});
    EXPECT_EQ(mps.ask("get_default_device_pinned_mem_limit 0"), test.want_limit) << test.limit;
    EXPECT_EQ(mps.ask("get_default_active_thread_percentage"), test.want_percent) << test.percent;
  }
}

// Whatever is typed, the daemon answers it and lives; a seeded stream of almost-commands.
TEST(MpsBadInput, AnyWordsAreAnswered) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const std::vector<std::string> kWords = {"get_server_list",
                                           "get_server_status",
                                           "start_server",
                                           "shutdown_server",
                                           "get_client_list",
                                           "get_device_client_list",
                                           "ps",
                                           "terminate_client",
                                           "set_default_active_thread_percentage",
                                           "get_default_active_thread_percentage",
                                           "set_active_thread_percentage",
                                           "get_active_thread_percentage",
                                           "set_default_device_pinned_mem_limit",
                                           "get_default_device_pinned_mem_limit",
                                           "set_device_pinned_mem_limit",
                                           "get_device_pinned_mem_limit",
                                           "set_default_client_priority",
                                           "get_default_client_priority",
                                           "device_query",
                                           "-uid",
                                           "-p",
                                           "-f",
                                           "--csv",
                                           "0",
                                           "1",
                                           "-1",
                                           "99999999999999999999",
                                           "2G",
                                           "0=2G",
                                           "512MB",
                                           "%s%n",
                                           "GPU-",
                                           "\x01\xff",
                                           std::string(3000, 'A'),
                                           "\t",
                                           server};
  uint32_t random = 12345;
  for (int round = 0; round < 40; ++round) {
    std::string input;
    for (int line = 0; line < 10; ++line) {
      for (uint32_t word = 0; word <= (random >> 8) % 4; ++word) {
        random = random * 1664525 + 1013904223;
        const std::string& next = kWords[(random >> 10) % kWords.size()];
        if (input.size() - (input.rfind('\n') + 1) + next.size() < 4000) input += next + " ";
      }
      // shutdown_server of the only server would end it, which is its right.
      input += line == 9 ? "" : "\n";
    }
    EXPECT_EQ(mps.console(input).exit_code, 0) << input;
  }
  EXPECT_EQ(mps.console("get_default_active_thread_percentage").exit_code, 0);
}

// Hostile messages on the console's socket: too long, none at all, binary.
TEST(MpsBadInput, HostileConsole) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  for (const std::string& noise :
       {std::string(100000, 'x'), std::string(4096, '\0'), std::string(1, '\xff')}) {
    const int fd = connect_seqpacket(mps.pipe().c_str(), "control_privileged", 20);
    ASSERT_GE(fd, 0);
    EXPECT_TRUE(send_message(fd, noise.data(), noise.size()));
    close(fd);
    EXPECT_EQ(mps.ask("get_default_active_thread_percentage"), "100.0\n");
  }
}

}  // namespace
}  // namespace gpusim::test
