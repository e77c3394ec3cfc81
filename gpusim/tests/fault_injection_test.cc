// Faults on demand as processes meet them: the gpusim command, libcuda's errors, the kernel log.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstring>

#include "common/driver_client.h"
#include "common/event_stream.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

std::unique_ptr<Process> holding_client(const Environment& environment) {
  auto client = probe(environment, {"init", "ctx", "alloc:100", "hold", "sync", "alloc:1", "free",
                                    "info", "hold", "sync"});
  for (int i = 0; i < 4; ++i) client->line();
  return client;
}

void expect_dead(Process* client, const std::string& error) {
  client->write("\n");
  for (const char* step : {"sync ", "alloc ", "free ", "info "}) {
    const std::string line = client->line();
    EXPECT_EQ(line.substr(0, line.find(' ', strlen(step))), step + error);
  }
}

TEST(FaultInjection, IllegalAccessOfAKernelHitsAllMpsClientsOfTheGpu) {
  Gpusimd driver("2xL4");
  Mps mps(driver);
  mps.start_server();
  const auto neighbour = holding_client(mps.client("0=1G"));
  Environment elsewhere_environment = mps.client();
  elsewhere_environment["CUDA_VISIBLE_DEVICES"] = "1";
  const auto elsewhere = holding_client(elsewhere_environment);
  EXPECT_EQ(probe_lines(mps.client("0=1G"), {"init", "ctx", "launch:my_illegal_address_kernel",
                                             "sync", "alloc:1", "info"}),
            "init 0\nctx 0\nlaunch 0\nsync 700\nalloc 700\ninfo 700 0 0\n")
      << "asynchronous, then sticky";
  expect_dead(neighbour.get(), "700");
  elsewhere->write("\n");
  EXPECT_EQ(elsewhere->line(), "sync 0") << "the other GPU's clients go on";
  const std::string log = read_file(driver.dir() + "/kernel.log");
  EXPECT_NE(log.find("NVRM: Xid (PCI:0000:01:00): 31, pid="), std::string::npos) << log;
  EXPECT_NE(log.find("name=gpusim_cuda_pro"), std::string::npos) << log;
}

TEST(FaultInjection, PlainProcessesAreIsolated) {
  Gpusimd driver("1xL4");
  const auto bystander = holding_client(driver.environment());
  Environment faulty = driver.environment();
  faulty["GPUSIM_KERNEL_FAULT"] = "launch-failed";
  EXPECT_EQ(probe_lines(faulty, {"init", "ctx", "launch:any", "sync"}),
            "init 0\nctx 0\nlaunch 0\nsync 719\n");
  bystander->write("\n");
  EXPECT_EQ(bystander->line(), "sync 0");
}

TEST(FaultInjection, FaultByCommand) {
  Gpusimd driver("1xL4");
  const auto one = holding_client(driver.environment());
  const auto two = holding_client(driver.environment());
  const Outcome wrong = gpusim(driver, {"fault", "--gpu", "0", "--pid", "1"});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.errors.find("no context on this GPU"), std::string::npos) << wrong.errors;
  EXPECT_EQ(gpusim(driver, {"fault", "--gpu", driver.uuid(0), "--pid", std::to_string(one->pid()),
                            "--error", "716"})
                .exit_code,
            0);
  expect_dead(one.get(), "716");
  EXPECT_EQ(gpusim(driver, {"fault", "--gpu", "0"}).exit_code, 0);
  expect_dead(two.get(), "700");
  const Outcome smi = gpusim(driver, {"smi"});
  EXPECT_NE(smi.output.find("(error 700)"), std::string::npos) << smi.output;
}

TEST(FaultInjection, LostAndBack) {
  Gpusimd driver("2xL4");
  const auto client = holding_client(driver.environment());
  const std::string before = driver.uuid(0);
  EXPECT_EQ(gpusim(driver, {"lose", "--gpu", "0"}).exit_code, 0);
  expect_dead(client.get(), "999");
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "count"}), "init 0\ncount 0 1\n")
      << "CUDA does not enumerate it";
  EXPECT_NE(gpusim(driver, {"smi"}).output.find("GPU is lost"), std::string::npos);
  EXPECT_EQ(gpusim(driver, {"restore", "--gpu", "0"}).exit_code, 0);
  EXPECT_EQ(driver.uuid(0), before);
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "count", "ctx"}),
            "init 0\ncount 0 2\nctx 0\n");
  client->write("\n");
  EXPECT_EQ(client->line(), "hold");
  EXPECT_EQ(client->line(), "sync 999") << "what was on it stays dead";
  EXPECT_EQ(gpusim(driver, {"restore", "--gpu", "0", "--new-uuid"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return driver.uuid(0) != before; }));
  EXPECT_NE(read_file(driver.dir() + "/cdi/nvidia.yaml").find(driver.uuid(0)), std::string::npos)
      << "the CDI spec follows";
  EXPECT_EQ(read_file(driver.dir() + "/cdi/nvidia.yaml").find(before), std::string::npos);
}

TEST(FaultInjection, ResetRequired) {
  Gpusimd driver("1xL4");
  EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "0", "119"}).exit_code, 0);
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx"}), "init 0\nctx 46\n");
  EXPECT_EQ(gpusim(driver, {"reset", "--gpu", "0"}).exit_code, 0);
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx"}), "init 0\nctx 0\n");
  EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "0", "119", "--event-only"}).exit_code, 0);
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx"}), "init 0\nctx 0\n");
}

// A connection waits for events while others work; one that was made later does not see earlier ones.
TEST(FaultInjection, EventStream) {
  Gpusimd driver("1xL4");
  EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "0", "13"}).exit_code, 0);
  EventStream stream;
  ASSERT_EQ(stream.open(driver.dir().c_str(), Role::kObserver), Status::kOk);
  EventEntry event = {};
  EXPECT_EQ(stream.next(&event, 0), Status::kNotFound);
  for (const char* xid : {"43", "45"}) {
    EXPECT_EQ(gpusim(driver, {"xid", "--gpu", "0", xid}).exit_code, 0);
  }
  ASSERT_EQ(stream.next(&event, 20000), Status::kOk);
  EXPECT_EQ(event.data, 43u);
  ASSERT_EQ(stream.next(&event, 20000), Status::kOk);
  EXPECT_EQ(event.data, 45u);
  EXPECT_EQ(stream.next(&event, 0), Status::kNotFound);
  driver.process().kill(SIGKILL);
  EXPECT_EQ(stream.next(&event, 20000), Status::kDisconnected);
  EXPECT_EQ(stream.next(&event, 0), Status::kDisconnected);
}

// Late answers: those about the slow GPU only.
TEST(FaultInjection, SlowGpu) {
  Gpusimd driver("2xL4");
  DriverClient client;
  ASSERT_EQ(client.connect_to(driver.dir().c_str(), Role::kObserver), Status::kOk);
  EXPECT_EQ(gpusim(driver, {"slow", "--gpu", "0", "--ms", "600000"}).exit_code, 0);
  Request request = make_request(Op::kGetState, 0);
  ASSERT_EQ(client.send(&request), Status::kOk);
  DeviceState state;
  DriverClient other;
  ASSERT_EQ(other.connect_to(driver.dir().c_str(), Role::kObserver), Status::kOk);
  EXPECT_EQ(other.get_state(1, &state), Status::kOk);
  EXPECT_EQ(gpusim(driver, {"slow", "--gpu", "0", "--ms", "1"}).exit_code, 0);
  EXPECT_EQ(other.get_state(0, &state), Status::kOk) << "late, but answered";
  EXPECT_EQ(gpusim(driver, {"slow", "--gpu", "0", "--ms", "0"}).exit_code, 0);
  char byte;
  EXPECT_LT(recv(client.fd(), &byte, 1, MSG_DONTWAIT), 0) << "the first one still waits";
}

TEST(FaultInjection, MpsServerKilled) {
  Gpusimd driver("1xL4");
  EXPECT_EQ(gpusim(driver, {"kill-server", "--gpu", "0"}).exit_code, 1) << "there is none";
  Mps mps(driver);
  mps.start_server();
  const auto client = holding_client(mps.client());
  EXPECT_EQ(gpusim(driver, {"kill-server", "--gpu", "0"}).exit_code, 0);
  expect_dead(client.get(), "806");
}

// A hung daemon accepts and does not answer; which one, the server on the GPU says.
TEST(FaultInjection, ControlDaemonHangs) {
  Gpusimd driver("1xL4");
  EXPECT_EQ(gpusim(driver, {"hang-mps", "--gpu", "0"}).exit_code, 1) << "no server is there";
  Mps mps(driver);
  mps.start_server();
  ASSERT_EQ(gpusim(driver, {"hang-mps", "--gpu", "0"}).exit_code, 0);
  Process console({binary("nvidia-cuda-mps-control")}, mps.environment());
  console.write("get_server_list\n");
  console.close_input();
  EXPECT_EQ(console.wait(1), -1) << "does not return";
  console.kill(SIGKILL);
  console.wait();
  ASSERT_EQ(gpusim(driver, {"resume-mps", "--pipe", mps.pipe()}).exit_code, 0);
  EXPECT_TRUE(eventually(
      [&] { return mps.console("get_default_active_thread_percentage").output == "100.0\n"; }));
  EXPECT_EQ(gpusim(driver, {"slow-mps", "--gpu", "0", "--ms", "1"}).exit_code, 0);
  EXPECT_EQ(mps.ask("get_default_active_thread_percentage"), "100.0\n") << "late, but it answers";
}

TEST(FaultInjection, ControlDaemonKilled) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  mps.start_server();
  EXPECT_EQ(gpusim(driver, {"kill-mps", "--gpu", "0"}).exit_code, 0);
  EXPECT_EQ(mps.daemon().wait(), 128 + SIGKILL);
  EXPECT_EQ(gpusim(driver, {"kill-mps", "--pipe", mps.pipe()}).exit_code, 1) << "dead already";
}

TEST(FaultInjection, BadArguments) {
  Gpusimd driver("1xL4");
  const struct {
    std::vector<std::string> words;
    int exit_code;
    const char* text;
  } kCases[] = {
      {{"fault"}, 2, "--gpu is missing"},
      {{"fault", "--gpu"}, 2, "--gpu needs a value"},
      {{"fault", "--gpu", "1"}, 1, "there is no GPU 1"},
      {{"fault", "--gpu", "GPU-nope"}, 1, "there is no GPU GPU-nope"},
      {{"fault", "--gpu", "-1"}, 1, "there is no GPU -1"},
      {{"fault", "--gpu", "0", "--pid", "x"}, 2, "--pid 'x' is not a whole number"},
      {{"fault", "--gpu", "0", "--error", "0"}, 2, "--error '0'"},
      {{"fault", "--gpu", "0", "--fast"}, 2, "unknown option '--fast'"},
      {{"xid", "--gpu", "0"}, 2, "xid needs one number"},
      {{"xid", "--gpu", "0", "0"}, 2, "xid needs one number"},
      {{"xid", "--gpu", "0", "99999999999999999999"}, 2, "xid needs one number"},
      {{"ecc", "--gpu", "0", "--count", "0"}, 2, "--count '0'"},
      {{"slow", "--gpu", "0"}, 2, "slow needs --ms"},
      {{"slow", "--gpu", "0", "--ms", "600001"}, 2, "--ms '600001'"},
      {{"gap", "crafted-limit"}, 2, "names: crafted-limit, plain-process, per-process"},
      {{"gap", "x=on"}, 2, "'x=on' is not NAME=on|off"},
      {{"hang-mps"}, 2, "--gpu N or --pipe DIR"},
      {{"hang-mps", "--pipe", "/nowhere"}, 1, "no MPS control daemon answers in /nowhere"},
      {{"kill-mps", "--pipe", "/nowhere"}, 1, "is no MPS control daemon"},
      {{"slow-mps", "--pipe", "/nowhere"}, 2, "slow-mps needs --ms"},
      {{"smi", "dance"}, 2, "smi knows no 'dance'"},
      {{"smi", "-c", "FAST"}, 2, "-c takes 0 DEFAULT"},
      {{"smi", "memory-limits", "--get", "-i", "0"}, 2, "needs -n"},
      {{"smi", "memory-limits", "-n", "/a", "-i", "0"}, 2, "either --set or --get"},
      {{"smi", "memory-limits", "--get", "-n", "/a", "-i", "0"}, 1, "does not have it"},
  };
  for (const auto& test : kCases) {
    const Outcome outcome = gpusim(driver, test.words);
    EXPECT_EQ(outcome.exit_code, test.exit_code) << test.text;
    EXPECT_NE(outcome.errors.find(test.text), std::string::npos)
        << test.text << ": " << outcome.errors;
  }
}

TEST(FaultInjection, GapsAtRunTime) {
  Gpusimd driver("1xL4", {"--driver", "615", "--gap", "per-process=off"});
  EXPECT_EQ(gpusim(driver, {"gap"}).output,
            "crafted-limit=on, plain-process=on, per-process=off\n");
  EXPECT_EQ(gpusim(driver, {"gap", "plain-process=off", "crafted-limit=off"}).output,
            "crafted-limit=off, plain-process=off, per-process=off\n");
  Mps mps(driver);
  mps.start_server();
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx"}), "init 0\nctx 46\n");
  gpusim(driver, {"gap", "plain-process=on"});
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx", "info"}),
            "init 0\nctx 0\ninfo 0 22405 22563\n");
}

TEST(FaultInjection, MemoryLimitsByCommand) {
  Gpusimd driver("1xL4", {"--driver", "615"});
  EXPECT_EQ(gpusim(driver, {"smi", "memory-limits", "--set", "-n", "/sys/fs/cgroup/a",
                            "--soft-limit", "100", "--hard-limit", "3000", "-i", "0"})
                .exit_code,
            0);
  EXPECT_EQ(gpusim(driver, {"smi", "memory-limits", "--get", "-n", "/a", "-i", "0"}).output,
            "namespace: /a\nsoft limit: 100 MiB\nhard limit: 3000 MiB\ncurrent used: 0 MiB\n");
  EXPECT_EQ(gpusim(driver, {"smi", "memory-limits", "--set", "-n", "/a", "--soft-limit", "default",
                            "--hard-limit", "max", "-i", driver.uuid(0)})
                .exit_code,
            0);
  EXPECT_NE(gpusim(driver, {"smi", "memory-limits", "--get", "-n", "/a", "-i", "0"})
                .output.find("hard limit: max"),
            std::string::npos);
}

TEST(FaultInjection, ComputeModeByCommand) {
  Gpusimd driver("2xL4");
  EXPECT_EQ(gpusim(driver, {"smi", "-i", driver.uuid(1), "-c", "EXCLUSIVE_PROCESS"}).exit_code, 0);
  EXPECT_NE(gpusim(driver, {"smi", "-i", "1"}).output.find("E. Process"), std::string::npos);
  EXPECT_EQ(gpusim(driver, {"smi", "-i", "0"}).output.find("E. Process"), std::string::npos);
  EXPECT_EQ(gpusim(driver, {"smi", "-c", "2"}).exit_code, 0);
  EXPECT_EQ(probe_lines(driver.environment(), {"init", "ctx", "ctx:1"}),
            "init 0\nctx 46\nctx 46\n");
}

}  // namespace
}  // namespace gpusim::test
