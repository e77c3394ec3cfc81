// What clients bring along, and clients and daemons in other namespaces.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "common/driver_client.h"
#include "common/unix_socket.h"
#include "driver/accounting.h"
#include "driver/device_table.h"
#include "mps/mps_protocol.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

bool can_make_namespaces(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {"/usr/bin/unshare"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.emplace_back("true");
  return run(command).exit_code == 0;
}

// CUDA_DEVICE_MAX_CONNECTIONS: 2 by default under Volta MPS; a client owns its connections in the
// shared pool, so more of them leave room for fewer clients (MPS documentation, environment
// variables). 809 for what does not fit is cuda.h's; 808 for one with the default.
TEST(MpsConnections, MoreOfThemLeaveRoomForFewerClients) {
  const struct {
    const char* gpu;
    const char* value;
    int contexts;
    const char* last;
  } kCases[] = {{"1xL4", "", 48, "808"},  {"1xL4", "2", 48, "808"},  {"1xL4", "4", 24, "809"},
                {"1xL4", "32", 3, "809"}, {"1xL4", "33", 48, "808"}, {"1xL4", "-1", 48, "808"},
                {"1xL4", "x", 48, "808"}, {"1xL4", "1", 48, "808"},  {"1xP4", "32", 16, "808"}};
  for (const auto& test : kCases) {
    Gpusimd driver(test.gpu);
    Mps mps(driver, {}, {});
    Environment environment = mps.client();
    if (test.value[0] != '\0') environment["CUDA_DEVICE_MAX_CONNECTIONS"] = test.value;
    std::vector<std::string> steps = {"init"};
    std::string want = "init 0\n";
    for (int i = 0; i <= test.contexts; ++i) {
      steps.emplace_back("newctx");
      want += i < test.contexts ? "newctx 0\n" : std::string("newctx ") + test.last + "\n";
    }
    EXPECT_EQ(probe_lines(environment, steps), want) << test.gpu << " " << test.value;
  }
}

// What a client gives back is free for others: by destroyed contexts, and by its end.
TEST(MpsConnections, AreGivenBack) {
  Accounting books(make_devices(std::get<0>(parse_gpu_spec("1xL4")), 1), {});
  books.add_session(100, 1000, Role::kMpsServer);
  ASSERT_EQ(books.create_context(100, 0, false), Status::kOk);
  MpsAdmission terms = {};
  terms.connections = 32;
  for (int32_t pid = 1; pid <= 4; ++pid) {
    ASSERT_EQ(books.admit(100, pid, terms), Status::kOk);
    books.add_session(static_cast<SessionId>(pid), pid, Role::kCuda);
  }
  for (int round = 0; round < 100; ++round) {
    for (SessionId id = 1; id <= 3; ++id) ASSERT_EQ(books.create_context(id, 0, true), Status::kOk);
    EXPECT_EQ(books.create_context(4, 0, true), Status::kTooManyConnections);
    EXPECT_EQ(books.destroy_context(2, 0), Status::kOk);
    EXPECT_EQ(books.create_context(4, 0, true), Status::kOk);
    for (const SessionId id : {1, 3, 4}) EXPECT_EQ(books.destroy_context(id, 0), Status::kOk);
  }
}

// CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING: the percentage may differ by context,
// never above the server's, and the device's count of multiprocessors shows it (MPS documentation,
// environment variables). The probe sets the variable between contexts.
TEST(MpsPercentage, PerContext) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.ask("set_default_active_thread_percentage 80");
  mps.start_server();
  const auto run_steps = [&](const Environment& environment, const char* first_sms, long first_ms,
                             const char* second_sms) {
    const auto client = probe(
        environment, {"init", "env:CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "newctx", "sms",
                      "spin:100000", "env:CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=90", "newctx", "sms"});
    EXPECT_EQ(client->line(), "init 0");
    EXPECT_EQ(client->line(), "env 0");
    EXPECT_EQ(client->line(), "newctx 0");
    EXPECT_EQ(client->line(), first_sms);
    EXPECT_TRUE(took_ms(client->line(), first_ms));
    EXPECT_EQ(client->line(), "env 0");
    EXPECT_EQ(client->line(), "newctx 0");
    EXPECT_EQ(client->line(), second_sms);
  };
  Environment environment = mps.client();
  // Without the opt-in only the server's 80 % holds: 46 of 58.
  run_steps(environment, "sms 0 58", 126, "sms 0 58");
  environment["CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING"] = "1";
  run_steps(environment, "sms 0 29", 200, "sms 0 46");
}

// One server for all users needs Volta; before, 800 (MPS documentation; cuda.h).
TEST(MpsUsers, MultiuserBeforeVolta) {
  Gpusimd driver("1xP4");
  Mps multiuser(driver, {}, {"-multiuser-server"});
  EXPECT_EQ(probe_lines(multiuser.client(), {"init"}), "init 800\n");
  Mps own(driver, {}, {});
  EXPECT_EQ(probe_lines(own.client(), {"init", "ctx"}), "init 0\nctx 0\n");
}

// A daemon in a PID namespace of its own does not see its clients' processes: the log says NEW CLIENT
// 0, and no pid means anything there (k8s-device-plugin issue 1045); the clients work all the same.
TEST(MpsNamespaces, DaemonDoesNotSeeItsClients) {
  if (!can_make_namespaces({"--pid", "--fork"})) GTEST_SKIP() << "cannot make PID namespaces";
  Gpusimd driver("1xL4");
  TempDir folder;
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "pipe";
  environment["CUDA_MPS_LOG_DIRECTORY"] = folder / "log";
  Process daemon({"/usr/bin/unshare", "--pid", "--fork", "--kill-child",
                  binary("nvidia-cuda-mps-control"), "-f", "-M"},
                 environment);
  ASSERT_TRUE(eventually([&] { return exists(folder / "pipe/nvidia-cuda-mps-control.pid"); }));
  const auto ask = [&](const std::string& command) {
    return run({binary("nvidia-cuda-mps-control")}, environment, command).output;
  };
  ask("set_default_device_pinned_mem_limit 0 1G");
  const auto first = probe(environment, {"init", "ctx", "info", "hold", "sync"});
  EXPECT_EQ(first->line(), "init 0");
  EXPECT_EQ(first->line(), "ctx 0");
  EXPECT_EQ(first->line(), "info 0 896 22563") << "with the server's limit";
  first->line();
  const auto second = probe(environment, {"init", "ctx", "hold"});
  for (const char* line : {"init 0", "ctx 0", "hold"}) EXPECT_EQ(second->line(), line);
  EXPECT_NE(read_file(folder / "log/control.log").find("NEW CLIENT 0 from user "),
            std::string::npos);
  std::string server = ask("get_server_list");
  server.pop_back();
  EXPECT_EQ(ask("get_client_list " + server), "0\n0\n");
  EXPECT_EQ(ask("terminate_client " + server + " " + std::to_string(first->pid())),
            "Client not found\n");
  second->kill(SIGKILL);
  EXPECT_EQ(second->wait(), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return ask("get_client_list " + server) == "0\n"; }));
  // A fault names nobody whom the daemon can see, and ends when all have gone.
  ASSERT_EQ(
      gpusim(driver, {"fault", "--gpu", "0", "--pid", std::to_string(first->pid())}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return ask("get_server_status " + server) == "FAULT\n"; }));
  first->write("\n");
  EXPECT_EQ(first->line(), "sync 700");
  EXPECT_TRUE(eventually([&] { return ask("get_server_status " + server) == "ACTIVE\n"; }));
}

// 470 and 535: a client whose /dev/shm is another one gets 805, as in a container without the host's
// (nvidia-container-toolkit issue 714); with the server's mounted there it works, as k8s-device-plugin
// and the DRA driver do it. From 580 on /dev/shm does not matter.
TEST(MpsNamespaces, SharedMemoryOfOldDrivers) {
  if (!can_make_namespaces({"--mount", "--ipc"})) GTEST_SKIP() << "cannot make mount namespaces";
  const struct {
    const char* driver;
    const char* of_its_own;
  } kCases[] = {{"470", "init 805\n"}, {"535", "init 805\n"}, {"580", "init 0\n"}};
  for (const auto& test : kCases) {
    Gpusimd driver("1xL4", {"--driver", test.driver});
    Mps mps(driver);
    mps.start_server();
    TempDir host_shm;
    const auto in_namespaces = [&](const std::string& mount) {
      const std::string script = mount + " && exec \"$0\" init";
      return run({"/usr/bin/unshare", "--mount", "--ipc", "/bin/sh", "-c", script, GPUSIM_PROBE},
                 mps.client())
          .output;
    };
    EXPECT_EQ(in_namespaces("mount -t tmpfs -o size=1m tmpfs /dev/shm"), test.of_its_own)
        << test.driver;
    EXPECT_EQ(in_namespaces("mount --bind /dev/shm " + host_shm.path() +
                            " && mount -t tmpfs -o size=1m tmpfs /dev/shm && mount --bind " +
                            host_shm.path() + " /dev/shm"),
              "init 0\n")
        << test.driver << ": the server's /dev/shm mounted";
  }
}

// A hello of nothing but ones (no text ends, every device is asked for), a truncated one, one that is
// too long; and noise on the connection to the server. Who did it is dropped, nobody else.
TEST(MpsBadInput, HostileClients) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto bystander = probe(mps.client("0=1G"), {"init", "ctx", "info", "hold", "info"});
  for (int i = 0; i < 4; ++i) bystander->line();
  mps::ClientHello hello;
  memset(&hello, 0xFF, sizeof hello);
  hello.magic = mps::kMpsMagic;
  const std::string ones(reinterpret_cast<const char*>(&hello), sizeof hello);
  memset(&hello, 0, sizeof hello);
  hello.magic = mps::kMpsMagic;
  hello.devices = 1;
  const std::string good(reinterpret_cast<const char*>(&hello), sizeof hello);
  for (const std::string& bytes : {ones, ones.substr(0, 100), ones + "x", good.substr(0, 1),
                                   std::string(sizeof hello, '\0'), good}) {
    const int control = connect_seqpacket(mps.pipe().c_str(), mps::kControlSocket, 20);
    ASSERT_GE(control, 0);
    ASSERT_TRUE(send_message(control, bytes.data(), bytes.size()));
    mps::ClientWelcome welcome = {};
    int fd = -1;
    const bool answered = receive_message_with_fd(control, &welcome, sizeof welcome, &fd);
    EXPECT_EQ(answered, bytes == good || bytes == ones) << bytes.size();
    EXPECT_TRUE(bytes != ones || welcome.device_count == 0) << "what is not there it does not have";
    if (fd >= 0) {
      const std::string noise(3000, 'x');
      EXPECT_TRUE(send_message(fd, noise.data(), noise.size()));
      char byte;
      EXPECT_LE(recv(fd, &byte, 1, 0), 0) << "dropped";
      close(fd);
    }
    close(control);
  }
  EXPECT_TRUE(eventually([&] {
    return mps.ask("get_client_list " + server) == std::to_string(bystander->pid()) + "\n";
  }));
  bystander->write("\n");
  EXPECT_EQ(bystander->line(), "info 0 896 22563");
}

}  // namespace
}  // namespace gpusim::test
