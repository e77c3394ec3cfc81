// nvidia-cuda-mps-control: what the console prints, the files, the daemon's life.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "common/unix_socket.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

// Outputs and silences as NVIDIA documents them; what is ours is marked.
TEST(MpsConsole, Outputs) {
  Gpusimd driver("2xL4");
  Mps mps(driver);
  const std::string uuid = driver.uuid(0);
  EXPECT_EQ(mps.ask("get_server_list"), "") << "none: empty";
  const std::string server = mps.start_server();
  const struct {
    std::string command;
    std::string want;
  } kCases[] = {
      {"get_server_list", server + "\n"},
      {"get_server_status " + server, "ACTIVE\n"},
      {"get_server_status 1", "Server not found\n"},  // ours
      {"get_client_list " + server, ""},
      {"get_default_active_thread_percentage", "100.0\n"},
      {"set_default_active_thread_percentage 25", "25.0\n"},
      {"get_default_active_thread_percentage", "25.0\n"},
      {"get_active_thread_percentage " + server, "100.0\n"},
      {"set_active_thread_percentage " + server + " 12.5", "12.5\n"},
      {"get_active_thread_percentage " + server, "12.5\n"},
      {"set_default_active_thread_percentage 101", "Invalid argument\n"},  // ours
      {"set_default_device_pinned_mem_limit 0 1044M", ""},
      {"get_default_device_pinned_mem_limit 0", "1G\n"},  // lossy, seen on 595.91.07
      {"set_default_device_pinned_mem_limit 0 512M", ""},
      {"get_default_device_pinned_mem_limit 0", "512M\n"},
      {"set_default_device_pinned_mem_limit 99 1G", ""},    // not checked against devices
      {"get_default_device_pinned_mem_limit " + uuid, ""},  // no translation from ordinal
      {"set_device_pinned_mem_limit " + server + " 0 3G", ""},
      {"get_device_pinned_mem_limit " + server + " 0", "3G\n"},
      {"terminate_client " + server + " 1", "Client not found\n"},  // ours
      {"set_default_client_priority 1", ""},
      {"get_default_client_priority", "1\n"},
      {"set_default_client_priority 2", "Invalid argument\n"},  // ours
      {"start_server -uid 0", ""},
      {"start_server -uid 0 -mlopart", ""},
      {"start_server -uid 0 -other", "Invalid argument\n"},  // ours
      {"get_server_list", server + "\n"},                    // still the one
      {"device_query --csv", "server,ordinal,uuid\n" + server + ",0," + uuid + "\n" + server +
                                 ",1," + driver.uuid(1) + "\n"},  // ours
      {"dance", "Unknown command: dance\n"},                      // ours
  };
  for (const auto& test : kCases) {
    const Outcome outcome = mps.console(test.command);  // without a newline, as callers do
    EXPECT_EQ(outcome.output, test.want) << test.command;
    EXPECT_EQ(outcome.exit_code, 0) << test.command;
  }
}

TEST(MpsConsole, SeveralLinesAndBlanks) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  EXPECT_EQ(mps.console("\n  set_default_active_thread_percentage   50 \n\n"
                        "get_default_active_thread_percentage")
                .output,
            "50.0\n50.0\n");
  EXPECT_EQ(mps.console("").exit_code, 0);
  EXPECT_EQ(mps.console(std::string(5000, 'x')).exit_code, 1);
  EXPECT_EQ(mps.ask("get_default_active_thread_percentage"), "50.0\n");
}

TEST(MpsConsole, NoDaemon) {
  Gpusimd driver("1xL4");
  const Outcome outcome = run({binary("nvidia-cuda-mps-control")}, driver.environment(),
                              "get_default_active_thread_percentage");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.output, "");
}

// A stopped daemon takes the connection and never answers: the caller needs its own time limit.
TEST(MpsConsole, HungDaemonHangsTheConsole) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.daemon().kill(SIGSTOP);
  Process console({binary("nvidia-cuda-mps-control")}, mps.environment());
  console.write("get_default_active_thread_percentage");
  console.close_input();
  EXPECT_EQ(console.wait(1), -1);
  mps.daemon().kill(SIGCONT);
  EXPECT_EQ(console.wait(), 0);
}

// ps: shortened UUID, the PID namespace's inode, the command.
TEST(MpsConsole, ClientsInPs) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto client = probe(mps.client(), {"init", "hold"});
  for (int i = 0; i < 2; ++i) client->line();
  const std::string pid = std::to_string(client->pid());
  ASSERT_TRUE(eventually([&] { return mps.ask("get_client_list " + server) == pid + "\n"; }));
  char target[64] = {};
  ASSERT_GT(readlink("/proc/self/ns/pid", target, sizeof target - 1), 0);
  const std::string ns = std::string(target + 5, strlen(target) - 6);
  const std::string table = mps.ask("ps");
  const size_t second_line = table.find('\n') + 1;
  EXPECT_EQ(table.substr(0, 9), "PID      ");
  std::string row = table.substr(second_line);
  for (size_t at; (at = row.find("  ")) != std::string::npos;) row.erase(at, 1);
  EXPECT_EQ(row, pid + " 0 " + server + " " + driver.uuid(0).substr(0, 22) + " " + ns + " " +
                     GPUSIM_PROBE + " init hold\n");
  client->close_input();
  client->wait();
  EXPECT_TRUE(eventually([&] { return mps.ask("get_client_list " + server).empty(); }));
}

// terminate_client prints 0; the client gets 810; the server does not kill the process.
TEST(MpsConsole, TerminateClient) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto client = probe(mps.client(), {"init", "ctx", "alloc:100", "hold", "sync", "hold"});
  for (int i = 0; i < 4; ++i) client->line();
  const std::string pid = std::to_string(client->pid());
  EXPECT_EQ(mps.ask("terminate_client " + server + " " + pid), "0\n");
  EXPECT_EQ(used_mib(driver, 0), 30);
  client->write("\n");
  EXPECT_EQ(client->line(), "sync 810");
  EXPECT_EQ(client->line(), "hold") << "alive";
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n");
}

TEST(MpsConsole, ShutdownServer) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string first = mps.start_server();
  EXPECT_EQ(mps.ask("shutdown_server " + first), "");
  EXPECT_EQ(mps.ask("get_server_list"), "");
  const std::string second = mps.start_server();
  const auto client = probe(mps.client(), {"init", "ctx", "hold", "sync"});
  for (int i = 0; i < 3; ++i) client->line();
  Process waiting({binary("nvidia-cuda-mps-control")}, mps.environment());
  waiting.write("shutdown_server " + second);
  waiting.close_input();
  EXPECT_EQ(waiting.wait(1), -1) << "waits for the client";
  EXPECT_EQ(mps.ask("shutdown_server " + second + " -f"), "") << "drops it";
  EXPECT_EQ(waiting.wait(), 0);
  client->write("\n");
  EXPECT_EQ(client->line(), "sync 806");
}

TEST(MpsDaemon, FilesAndModes) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const struct {
    const char* name;
    unsigned mode;
  } kCases[] = {
      {"control", S_IFSOCK | 0666},
      {"control_lock", S_IFREG | 0666},
      {"control_privileged", S_IFSOCK | 0755},
      {"log", S_IFIFO | 0777},
      {"nvidia-cuda-mps-control.pid", S_IFREG | 0666},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(mode_of(mps.pipe() + "/" + test.name), test.mode) << test.name;
  }
  EXPECT_EQ(read_file(mps.pipe() + "/nvidia-cuda-mps-control.pid"),
            std::to_string(mps.daemon().pid()) + "\n");
  const Outcome second = run({binary("nvidia-cuda-mps-control"), "-d"}, mps.environment());
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.errors.find("already running"), std::string::npos);
}

// quit removes the pid file; `control` may stay behind, stale: then clients get 805.
TEST(MpsDaemon, Quit) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  EXPECT_EQ(mps.console("quit").exit_code, 0);
  EXPECT_EQ(mps.daemon().wait(), 0);
  EXPECT_FALSE(exists(mps.pipe() + "/nvidia-cuda-mps-control.pid"));
  EXPECT_NE(::kill(std::stoi(server), 0), 0) << "the server went with it";
  EXPECT_EQ(used_mib(driver, 0), 0);
  EXPECT_EQ(mps.console("get_server_list").exit_code, 1);
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 805\n");
}

TEST(MpsDaemon, QuitWaitsForClientsUntilItsTimeLimit) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  const auto client = probe(mps.client(), {"init", "ctx", "hold", "sync"});
  for (int i = 0; i < 3; ++i) client->line();
  Process patient({binary("nvidia-cuda-mps-control")}, mps.environment());
  patient.write("quit");
  patient.close_input();
  EXPECT_EQ(patient.wait(1), -1);
  EXPECT_EQ(mps.console("quit -t 0").exit_code, 0);
  EXPECT_EQ(patient.wait(), 0);
  EXPECT_EQ(mps.daemon().wait(), 0);
  client->write("\n");
  EXPECT_EQ(client->line(), "sync 806");
}

// -d: the parent returns only when the daemon accepts, and a caller that reads its pipes sees EOF.
TEST(MpsDaemon, Background) {
  Gpusimd driver("1xL4");
  TempDir folder;
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = folder / "pipe";
  environment["CUDA_MPS_LOG_DIRECTORY"] = folder / "log";
  const Outcome started =
      run({binary("nvidia-cuda-mps-control"), "-d", "-multiuser-server"}, environment);
  ASSERT_EQ(started.exit_code, 0) << started.errors;
  const pid_t pid = std::stoi(read_file(folder / "pipe/nvidia-cuda-mps-control.pid"));
  EXPECT_EQ(getsid(pid), pid) << "its own session";
  EXPECT_EQ(
      run({binary("nvidia-cuda-mps-control")}, environment, "get_default_active_thread_percentage")
          .output,
      "100.0\n");
  EXPECT_EQ(run({binary("nvidia-cuda-mps-control")}, environment, "quit -t 1").exit_code, 0);
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
  environment["CUDA_MPS_LOG_DIRECTORY"] = "/nowhere/log";
  EXPECT_EQ(run({binary("nvidia-cuda-mps-control"), "-d"}, environment).exit_code, 1);
}

// After kill -9 everything is left behind; the next daemon starts over it, the server ends alone.
TEST(MpsDaemon, KilledDaemon) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  mps.daemon().kill(SIGKILL);
  mps.daemon().wait();
  EXPECT_TRUE(exists(mps.pipe() + "/nvidia-cuda-mps-control.pid")) << "stale";
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 805\n");
  EXPECT_TRUE(eventually([&] { return used_mib(driver, 0) == 0; }));
  Process next({binary("nvidia-cuda-mps-control"), "-f", "-M"}, mps.environment());
  ASSERT_TRUE(eventually([&] {
    return read_file(mps.pipe() + "/nvidia-cuda-mps-control.pid") ==
           std::to_string(next.pid()) + "\n";
  }));
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx"}), "init 0\nctx 0\n");
  next.kill(SIGTERM);
  EXPECT_EQ(next.wait(), 0);
}

TEST(MpsDaemon, LogLines) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  const std::string server = mps.start_server();
  const auto client = probe(mps.client(), {"init", "hold"});
  for (int i = 0; i < 2; ++i) client->line();
  const std::string pid = std::to_string(client->pid());
  const std::string user = std::to_string(getuid());
  for (const std::string& text :
       {"Starting control daemon using socket " + mps.pipe() + "/control",
        std::string("CUDA MPS Control binary version: 13000"), std::string("NEW UI"),
        std::string("Cmd:get_server_list"), std::string("UI closed"),
        "Starting new server " + server + " for user " + user, "NEW SERVER " + server + ": Ready",
        "NEW CLIENT " + pid + " from user " + user + ": Server already exists"}) {
    EXPECT_NE(mps.control_log().find(text), std::string::npos) << text;
  }
  for (const std::string& text :
       {std::string("Creating server context on device 0 (NVIDIA L4)"),
        std::string("Active Threads Percentage set to 100.0"), std::string("Server has started"),
        "Received new client request for {PID: " + pid + ", Context ID: 0}",
        "Device NVIDIA L4 (uuid " + driver.uuid(0) + ") is associated"}) {
    EXPECT_TRUE(eventually([&] { return mps.server_log().find(text) != std::string::npos; }))
        << text;
  }
}

// The first client starts the server: pushed to the pending list, then taken.
TEST(MpsDaemon, FirstClientStartsTheServer) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  EXPECT_EQ(probe_lines(mps.client("0=1G"), {"init", "ctx", "info"}),
            "init 0\nctx 0\ninfo 0 896 22563\n");
  EXPECT_NE(mps.control_log().find("Server is not ready, push client to pending list"),
            std::string::npos);
}

// No driver, so no server: its clients get 805, and the log says how it ended.
TEST(MpsDaemon, ServerThatCannotStart) {
  Gpusimd driver("1xL4");
  Mps mps(driver, {{"GPUSIM_DIR", "/nowhere"}});
  EXPECT_EQ(probe_lines(mps.client(), {"init"}), "init 805\n");
  EXPECT_NE(mps.control_log().find("exited with status 1"), std::string::npos);
  EXPECT_EQ(mps.ask("get_server_list"), "");
}

TEST(MpsDaemon, NoiseOnTheControlSocket) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  for (const std::string& noise : {std::string("hello"), std::string(100000, 'x')}) {
    const int fd = connect_seqpacket(mps.pipe().c_str(), "control", 20);
    ASSERT_GE(fd, 0);
    EXPECT_TRUE(send_message(fd, noise.data(), noise.size()));
    char answer[8];
    EXPECT_LE(recv(fd, answer, sizeof answer, 0), 0);
    close(fd);
  }
  EXPECT_NE(mps.control_log().find("User did not send valid credentials"), std::string::npos);
  EXPECT_EQ(mps.ask("get_server_list"), "") << "noise starts no server";
}

}  // namespace
}  // namespace gpusim::test
