// The daemon as a process: its folder, its exit codes, hostile and dying clients.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/driver_client.h"
#include "common/unix_socket.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

TEST(Gpusimd, Arguments) {
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* text;
  } kCases[] = {
      {{"--help"}, 0, "usage: gpusimd"},
      {{"--version"}, 0, "580.95.05-gpusim"},
      {{}, 2, "--dir is missing"},
      {{"--dir", "/tmp/unused"}, 2, "--gpus is missing"},
      {{"--dir", "/tmp/unused", "--gpus", "2xRTX"}, 2, "'2xRTX' names an unknown model"},
      {{"--dir", "/tmp/unused", "--gpus", "2xL4", "--seed", "x"}, 2, "--seed 'x'"},
      {{"--dir", "/tmp/unused", "--gpus", "2xL4", "--driver", "390"},
       2,
       "--driver '390' is not a known version; known: 470, 535"},
      {{"--dir", "/tmp/unused", "--gpus", "2xL4", "--gap", "x=on"}, 2, "--gap 'x=on'"},
      {{"--dir", "/tmp/unused", "--gpus", "2xL4", "--file", "x"}, 2, "exclude each other"},
      {{"--dir", "/tmp/unused", "--file", "/nowhere"}, 2, "--file /nowhere: cannot be read"},
      {{"--dir", "/tmp/unused", "--gpus"}, 2, "--gpus needs a value"},
      {{"--fast"}, 2, "unknown option '--fast'"},
      {{"--dir", "/proc/nowhere", "--gpus", "1xL4"}, 1, "cannot create /proc/nowhere"},
  };
  for (const auto& test : kCases) {
    std::vector<std::string> arguments = {binary("gpusimd")};
    arguments.insert(arguments.end(), test.arguments.begin(), test.arguments.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, test.exit_code) << test.text;
    EXPECT_NE((outcome.output + outcome.errors).find(test.text), std::string::npos)
        << outcome.output << outcome.errors;
  }
}

TEST(Gpusimd, FolderAndCleanEnd) {
  Gpusimd driver("2xL4,1xH100");
  EXPECT_EQ(mode_of(driver.dir() + "/socket/gpusimd.sock") & 0777, 0666u) << "as /dev/nvidia*";
  EXPECT_EQ(mode_of(driver.dir() + "/socket") & 0777, 0755u);
  EXPECT_EQ(driver.uuid(2).size(), 40u);
  driver.process().kill(SIGTERM);
  EXPECT_EQ(driver.process().wait(), 0);
  for (const char* name :
       {"/gpusimd.pid", "/socket/gpusimd.sock", "/devices/nvidia0", "/cdi/nvidia.yaml"}) {
    EXPECT_FALSE(exists(driver.dir() + name)) << name;
  }
}

TEST(Gpusimd, SeedAndFolderDecideTheUuids) {
  Gpusimd driver("2xL4");
  const std::string first = driver.uuid(0);
  driver.process().kill(SIGKILL);
  driver.process().wait();
  EXPECT_TRUE(exists(driver.dir() + "/socket/gpusimd.sock")) << "kill -9 leaves the socket";
  driver.restart();
  EXPECT_EQ(driver.uuid(0), first) << "same machine and folder, over a stale socket";
  Gpusimd elsewhere("2xL4");
  EXPECT_NE(elsewhere.uuid(0), first);
  Gpusimd seeded("1xL4", {"--seed", "1"});
  EXPECT_EQ(seeded.uuid(0), "GPU-e1264dd8-9c09-c327-80fa-a5ca48304d07");
}

TEST(Gpusimd, OneDaemonPerFolder) {
  Gpusimd driver("1xL4");
  const Outcome second = run({binary("gpusimd"), "--dir", driver.dir(), "--gpus", "1xL4"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.errors.find("another gpusimd already serves " + driver.dir()),
            std::string::npos);
  EXPECT_EQ(used_mib(driver, 0), 0) << "the first one still serves";
}

// sun_path holds 108 bytes.
TEST(Gpusimd, LongFolder) {
  TempDir folder;
  std::string dir = folder / std::string(100, 'a');
  dir += "/" + std::string(100, 'b');
  Process daemon({binary("gpusimd"), "--dir", dir, "--gpus", "1xL4"}, {});
  ASSERT_TRUE(eventually([&] { return exists(dir + "/gpusimd.pid"); }));
  DriverClient client;
  EXPECT_EQ(client.connect_to(dir.c_str(), Role::kObserver), Status::kOk);
  EXPECT_EQ(client.device_count(), 1u);
}

TEST(Gpusimd, HostileMessagesDropOnlyTheirSender) {
  Gpusimd driver("1xL4");
  DriverClient bystander;
  ASSERT_EQ(bystander.connect_to(driver.dir().c_str(), Role::kObserver), Status::kOk);
  const auto message = [](auto change) {
    Request request = make_request(Op::kHello);
    request.magic = kProtocolMagic;
    request.version = kProtocolVersion;
    change(&request);
    return std::string(reinterpret_cast<const char*>(&request), sizeof request);
  };
  const std::string good = message([](Request*) {});
  const struct {
    const char* name;
    std::string bytes;
  } kCases[] = {
      {"one byte", "x"},
      {"truncated", good.substr(0, good.size() - 1)},
      {"too long", good + "x"},
      {"very long", std::string(100000, 'x')},
      {"wrong magic", message([](Request* r) { r->magic = 0; })},
      {"other version", message([](Request* r) { r->version = 99; })},
      {"no hello first", message([](Request* r) { r->op = Op::kGetState; })},
      {"unknown role", message([](Request* r) { r->flags = 99; })},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    const int fd = connect_seqpacket((driver.dir() + "/socket").c_str(), kSocketName, 20);
    ASSERT_GE(fd, 0);
    EXPECT_TRUE(send_message(fd, test.bytes.data(), test.bytes.size()));
    char answer[8];
    EXPECT_LE(recv(fd, answer, sizeof answer, 0), 0) << "dropped";
    close(fd);
    DeviceState state;
    EXPECT_EQ(bystander.get_state(0, &state), Status::kOk);
  }
  // After the hello: unknown operations and devices are answered.
  Request request = make_request(static_cast<Op>(150));
  Reply reply;
  EXPECT_EQ(bystander.call(&request, &reply), Status::kUnsupported);
  request = make_request(Op::kGetState, 4000000000);
  EXPECT_EQ(bystander.call(&request, &reply), Status::kNoSuchDevice);
}

// One that asks without ever reading the answers must not hold up the others.
TEST(Gpusimd, ClientThatDoesNotRead) {
  Gpusimd driver("1xL4");
  const int fd = connect_seqpacket((driver.dir() + "/socket").c_str(), kSocketName, 20);
  ASSERT_GE(fd, 0);
  Request request = make_request(Op::kHello);
  request.magic = kProtocolMagic;
  request.version = kProtocolVersion;
  bool dropped = false;
  for (int i = 0; i < 10000 && !dropped; ++i) {
    dropped = !send_message(fd, &request, sizeof request);
    request.op = Op::kGetState;
  }
  EXPECT_TRUE(dropped);
  EXPECT_EQ(used_mib(driver, 0), 0);
  close(fd);
}

// A full disk: no start, with the reason; while it runs, only the line for the kernel log is lost.
TEST(Gpusimd, FullDisk) {
  TempDir folder;
  const std::string dir = folder / "g";
  ASSERT_EQ(mkdir(dir.c_str(), 0755), 0);
  ASSERT_EQ(mkdir((dir + "/cdi").c_str(), 0755), 0);
  ASSERT_EQ(symlink("/dev/full", (dir + "/cdi/nvidia.yaml.tmp").c_str()), 0);
  const Outcome outcome = run({binary("gpusimd"), "--dir", dir, "--gpus", "1xL4"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("cdi/nvidia.yaml.tmp: No space left on device"), std::string::npos)
      << outcome.errors;

  Gpusimd driver("1xL4");
  ASSERT_EQ(symlink("/dev/full", (driver.dir() + "/kernel.log").c_str()), 0);
  EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "0", "13"}).exit_code, 0);
  EXPECT_EQ(used_mib(driver, 0), 0) << "goes on";
}

// Who says nothing, or talks while an answer is owed, holds up nobody.
TEST(Gpusimd, SilentAndImpatientClients) {
  Gpusimd driver("1xL4");
  std::vector<int> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(connect_seqpacket((driver.dir() + "/socket").c_str(), kSocketName, 20));
    ASSERT_GE(silent.back(), 0);
  }
  DriverClient impatient;
  ASSERT_EQ(impatient.connect_to(driver.dir().c_str(), Role::kObserver), Status::kOk);
  Request request = make_request(Op::kWaitEvent);
  EXPECT_EQ(impatient.send(&request), Status::kOk);
  Reply reply;
  request = make_request(Op::kGetState);
  EXPECT_EQ(impatient.call(&request, &reply), Status::kDisconnected);
  EXPECT_EQ(used_mib(driver, 0), 0);
  for (const int fd : silent) close(fd);
}

// What is for gpusimd's own user only: faults, compute mode, memory limits.
TEST(Gpusimd, Privileges) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  Gpusimd driver("1xL4", {"--driver", "615"});
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    DriverClient client;
    if (client.connect_to(driver.dir().c_str(), Role::kObserver) != Status::kOk) _exit(2);
    for (const Op op : {Op::kInjectFault, Op::kInjectXid, Op::kLoseDevice, Op::kRestoreDevice,
                        Op::kResetDevice, Op::kSlowDevice, Op::kInjectEcc, Op::kSetBehaviour,
                        Op::kSetComputeMode, Op::kSetMemoryLimit}) {
      Request request = make_request(op);
      Reply reply;
      if (client.call(&request, &reply) != Status::kNotPermitted) _exit(static_cast<int>(op));
    }
    DeviceState state;
    _exit(client.get_state(0, &state) == Status::kOk ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the operation that was let through, or the step";
}

// One process cannot take all connections.
TEST(Gpusimd, ConnectionsPerProcess) {
  Gpusimd driver("1xL4");
  std::vector<std::unique_ptr<DriverClient>> clients;
  int accepted = 0;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<DriverClient>());
    if (clients.back()->connect_to(driver.dir().c_str(), Role::kObserver) == Status::kOk) {
      ++accepted;
    }
  }
  EXPECT_EQ(accepted, 32);
}

// A fleet file, and the spec as nvidia-ctk writes it: versioned libraries and an ldconfig hook (TK).
TEST(Gpusimd, FleetFileAndCdiLikeNvidiaCtk) {
  TempDir folder;
  const std::string path = folder / "fleet.json";
  std::ofstream(path) << R"({"driver": "550", "gpus": [{"model": "T4"},
      {"model": "L4", "uuid": "GPU-01234567-89ab-cdef-0123-456789abcdef"}]})";
  Process process({binary("gpusimd"), "--dir", folder / "g", "--file", path}, {});
  ASSERT_TRUE(eventually([&] { return exists(folder / "g/gpusimd.pid"); }));
  const Outcome cdi = run({binary("gpusim"), "--dir", folder / "g", "cdi", "--like-nvidia-ctk"});
  EXPECT_EQ(cdi.exit_code, 0) << cdi.errors;
  for (const char* text :
       {"cdiVersion: \"0.5.0\"", "- name: \"GPU-01234567-89ab-cdef-0123-456789abcdef\"",
        "/libcuda.so.550.163.01-gpusim\"", "/libnvidia-ml.so.550.163.01-gpusim\"",
        "hookName: \"createContainer\"", "\"nvidia-cdi-hook\", \"update-ldcache\", \"--folder\"",
        "NVIDIA_CTK_LIBCUDA_DIR=/usr/lib"}) {
    EXPECT_NE(cdi.output.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(cdi.output.find("/libcuda.so.1\"\n          containerPath"), std::string::npos);
  process.kill(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
}

TEST(Gpusimd, DriverByEnvironment) {
  TempDir folder;
  Process process({binary("gpusimd"), "--dir", folder / "g", "--gpus", "1xL4"},
                  {{"GPUSIM_DRIVER", "535"}});
  ASSERT_TRUE(eventually([&] { return exists(folder / "g/gpusimd.pid"); }));
  EXPECT_NE(run({binary("gpusim"), "--dir", folder / "g", "smi"}).output.find("535.261.03-gpusim"),
            std::string::npos);
  process.kill(SIGTERM);
  process.wait();
  EXPECT_EQ(
      run({binary("gpusimd"), "--dir", folder / "g", "--gpus", "1xL4"}, {{"GPUSIM_DRIVER", "x"}})
          .exit_code,
      2);
}

// The hook makes the link by which programs look for the library, in the container's root.
TEST(Gpusimd, LdcacheHook) {
  if (geteuid() != 0) GTEST_SKIP() << "ldconfig -r needs root";
  TempDir folder;
  namespace fs = std::filesystem;
  const std::string root = folder / "root";
  fs::create_directories(root + "/usr/lib/x86_64-linux-gnu");
  fs::create_directories(root + "/etc");
  fs::copy_file(binary("libcuda.so.1"),
                root + "/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05-gpusim");
  std::ofstream(folder / "config.json") << R"({"root": {"path": "root"}})";
  const Outcome hook = run({binary("gpusim"), "nvidia-cdi-hook", "update-ldcache", "--folder",
                            "/usr/lib/x86_64-linux-gnu"},
                           {}, "{\"ociVersion\": \"1.0\", \"bundle\": \"" + folder.path() + "\"}");
  EXPECT_EQ(hook.exit_code, 0) << hook.errors;
  EXPECT_EQ(fs::read_symlink(root + "/usr/lib/x86_64-linux-gnu/libcuda.so.1"),
            "libcuda.so.580.95.05-gpusim");
  for (const char* state : {"", "{}", "{\"bundle\": \"/nowhere\"}", "\x01{"}) {
    EXPECT_EQ(
        run({binary("gpusim"), "nvidia-cdi-hook", "update-ldcache", "--folder", "/x"}, {}, state)
            .exit_code,
        1)
        << state;
  }
}

// The measures of nvidia-smi's table: each line is 91 wide, whatever is in it.
TEST(Gpusimd, SmiLayout) {
  Gpusimd driver("1xL4,1xA100-40:3g.20gb+1g.5gb,1xH100");
  Mps mps(driver, {{"CUDA_VISIBLE_DEVICES", driver.uuid(0)}});
  mps.start_server();
  const auto client = probe(mps.client(), {"init", "ctx", "alloc:1000", "hold"});
  for (int i = 0; i < 4; ++i) client->line();
  const std::string list = gpusim(driver, {"smi", "-L"}).output;
  const size_t at = list.rfind("UUID: ") + 6;
  const std::string last_uuid = list.substr(at, list.rfind(')') - at);
  ASSERT_EQ(gpusim(driver, {"xid", "--gpu", last_uuid, "48"}).exit_code, 0) << list;
  std::istringstream lines(gpusim(driver, {"smi"}).output);
  bool has_server = false;
  bool has_client = false;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.empty() || line.size() == 91) << line;
    has_server = has_server || line.find("      C   nvidia-cuda-mps-server ") != std::string::npos;
    has_client = has_client || (line.find("    M+C   ") != std::string::npos &&
                                line.find("1128MiB |") != std::string::npos);
  }
  EXPECT_TRUE(has_server);
  EXPECT_TRUE(has_client);
}

TEST(Gpusimd, SmiAndCdiCommands) {
  Gpusimd driver("1xL4,1xH100");
  const Outcome smi = run({binary("gpusim"), "smi"}, driver.environment());
  EXPECT_EQ(smi.exit_code, 0);
  for (const std::string& text :
       {std::string("580.95.05-gpusim"), std::string("simulated"),
        std::string("NVIDIA H100 80GB HBM3"), std::string("      0MiB /  23034MiB |"),
        std::string("No running processes found")}) {
    EXPECT_NE(smi.output.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(gpusim(driver, {"smi", "-L"}).output,
            "GPU 0: NVIDIA L4 (UUID: " + driver.uuid(0) + ")\n" +
                "GPU 1: NVIDIA H100 80GB HBM3 (UUID: " + driver.uuid(1) + ")\n");
  const Outcome cdi = run({binary("gpusim"), "cdi", "--dir", driver.dir()});
  EXPECT_EQ(cdi.exit_code, 0);
  EXPECT_EQ(cdi.output, read_file(driver.dir() + "/cdi/nvidia.yaml"));
  for (const std::string& text :
       {std::string("cdiVersion: \"0.5.0\""), std::string("kind: \"nvidia.com/gpu\""),
        std::string("- name: \"0\""), "- name: \"" + driver.uuid(1) + "\"",
        std::string("- name: \"all\""), "hostPath: \"" + driver.dir() + "/socket\"",
        "hostPath: \"" + binary("libcuda.so.1") + "\"",
        std::string("containerPath: \"/run/gpusim/devices/nvidia1\""),
        std::string("GPUSIM_DIR=/run/gpusim")}) {
    EXPECT_NE(cdi.output.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(cdi.output.find("hooks"), std::string::npos);
  EXPECT_EQ(run({binary("gpusim"), "smi", "--dir", "/nowhere"}).exit_code, 1);
  EXPECT_EQ(run({binary("gpusim"), "dance"}).exit_code, 2);
}

}  // namespace
}  // namespace gpusim::test
