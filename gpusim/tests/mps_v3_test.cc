// MPS v3 (driver 615 and newer): NVIDIA's MPS documentation, "v3 interface", "namespaces",
// "configuration file". Texts of errors, and columns beyond those documented, are ours.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/harness.h"

namespace gpusim::test {
namespace {

class MpsV3 : public ::testing::Test {
 protected:
  MpsV3() : driver("2xL4", {"--driver", "615"}) {}

  std::unique_ptr<Mps> start(std::vector<std::string> flags = {"-p", "3", "-m"}) {
    return std::make_unique<Mps>(driver, Environment{}, std::move(flags));
  }
  static Outcome call(const Mps& mps, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), binary("nvidia-cuda-mps-control"));
    return run(arguments, mps.environment());
  }
  static std::string ask(const Mps& mps, std::vector<std::string> arguments) {
    const Outcome outcome = call(mps, std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output;
  }
  static std::string field(const Mps& mps, const std::string& server, const std::string& name) {
    std::string value = call(mps, {"server", "get", server, name}).output;
    if (!value.empty()) value.pop_back();
    return value;
  }
  // "Ready" of a server, or what it is instead.
  static std::string status(const Mps& mps, const std::string& server) {
    return field(mps, server, "status");
  }
  static std::string pid_of(const Mps& mps, const std::string& server) {
    return field(mps, server, "pid");
  }
  Environment client(const Mps& mps, const std::string& folder, const std::string& limit = "") {
    Environment environment = mps.client(limit);
    if (!folder.empty()) environment["CUDA_MPS_PIPE_DIRECTORY"] = mps.pipe() + "/" + folder;
    return environment;
  }
  std::string free_mib(const Mps& mps, const std::string& folder, const std::string& limit = "") {
    return probe_lines(client(mps, folder, limit), {"init", "ctx", "info"});
  }
  static std::string info(int mib) {
    return "init 0\nctx 0\ninfo 0 " + std::to_string(mib) + " 22563\n";
  }

  // As gpusimd reads it: of a hybrid machine that of the memory controller.
  static std::string own_cgroup() {
    std::ifstream file("/proc/self/cgroup");
    std::string unified;
    for (std::string line; std::getline(file, line);) {
      const size_t colon = line.find(':');
      const size_t second = line.find(':', colon + 1);
      const std::string controllers = line.substr(colon + 1, second - colon - 1);
      if (controllers == "memory") return line.substr(second + 1);
      if (controllers.empty()) unified = line.substr(second + 1);
    }
    return unified;
  }

  Gpusimd driver;
};

TEST_F(MpsV3, ServerList) {
  const auto mps = start();
  EXPECT_EQ(ask(*mps, {"server", "list", "--format=csv"}),
            "name,uid,pid,status,pipe-directory,allowed-devices,context-ids\n");
  EXPECT_EQ(
      ask(*mps, {"server", "create", "training", "--uid=0", "--allowed-devices=" + driver.uuid(1)}),
      "");
  ASSERT_TRUE(eventually([&] { return status(*mps, "training") == "Ready"; }));
  const std::string pid = pid_of(*mps, "training");
  const std::string row =
      "training,0," + pid + ",Ready," + mps->pipe() + "/training," + driver.uuid(1) + ",-\n";
  EXPECT_EQ(ask(*mps, {"server", "list", "--format=csv,noheader"}), row);
  EXPECT_EQ(ask(*mps, {"server", "list", "--format=csv"}),
            "name,uid,pid,status,pipe-directory,allowed-devices,context-ids\n" + row);
  const std::string table = ask(*mps, {"server", "list"});
  EXPECT_EQ(table.substr(0, 19), "NAME      UID  PID ");
  EXPECT_TRUE(exists(mps->pipe() + "/training/control"));
  EXPECT_EQ(mode_of(mps->pipe() + "/training/default/control"), S_IFSOCK | 0666u);
  EXPECT_EQ(probe_lines(client(*mps, "training"), {"init", "count"}), "init 0\ncount 0 1\n");
  EXPECT_EQ(ask(*mps, {"server", "delete", "training"}), "");
  EXPECT_FALSE(exists(mps->pipe() + "/training"));
  EXPECT_EQ(ask(*mps, {"server", "list", "--format=csv,noheader"}), "");
}

// Server-level limits hold for the default namespace only; a named one without limits has the whole
// GPU; its memory limit can be lowered by the client's environment.
TEST_F(MpsV3, LimitsOfNamespaces) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s"});
  ask(*mps, {"server", "set", "s", "--pinned-memory-limit=4G"});
  ask(*mps, {"namespace", "create", "small", "--server=s"});
  ask(*mps, {"namespace", "set", "small", "server=s", "pinned-memory-limit=1048576K"});
  ask(*mps, {"namespace", "create", "free", "--server=s"});
  EXPECT_EQ(free_mib(*mps, "s"), info(4096 - 128));
  EXPECT_EQ(free_mib(*mps, "s/default"), info(4096 - 128));
  EXPECT_EQ(free_mib(*mps, "s/small"), info(1024 - 128));
  EXPECT_EQ(free_mib(*mps, "s/small", "0=512M"), info(512 - 128));
  EXPECT_EQ(free_mib(*mps, "s/small", "0=2G"), info(1024 - 128)) << "cannot widen";
  EXPECT_EQ(free_mib(*mps, "s/free"), info(22563 - 30 - 128));
  EXPECT_EQ(free_mib(*mps, "s/small", "0=2G,7=4G"), info(22563 - 30 - 128))
      << "an unknown device in the client's value drops every limit, the namespace's too";
  ask(*mps, {"namespace", "set", "small", "--server=s", "--pinned-memory-limit=2G"});
  EXPECT_EQ(free_mib(*mps, "s/small"), info(2048 - 128));
  const auto held = probe(client(*mps, "s/small"), {"init", "hold"});
  for (int i = 0; i < 2; ++i) held->line();
  ASSERT_TRUE(eventually([&] {
    return call(*mps, {"namespace", "delete", "small", "--server=s"}).errors ==
           "namespace small has 1 clients; --force deletes it\n";
  }));
  EXPECT_EQ(ask(*mps, {"namespace", "get", "small", "s", "pinned-memory-limit"}), "2G\n");
  EXPECT_EQ(ask(*mps, {"namespace", "list", "small", "--server=s", "--format=csv,noheader"}),
            "small,s,Ready,2G,100.0,0," + mps->pipe() + "/s/small\n");
  held->close_input();
  held->wait();
  ASSERT_TRUE(eventually([&] {
    return call(*mps, {"namespace", "delete", "small", "--server=s"}).exit_code == 0;
  }));
  EXPECT_FALSE(exists(mps->pipe() + "/s/small"));
  // A container that has the folder mounted now runs plain.
  EXPECT_EQ(free_mib(*mps, "s/small"), info(22563 - 30 - 128));
}

// $P/control: by user id, to the default server uid_<uid>.
TEST_F(MpsV3, DefaultServerOfAUser) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  const auto mps = start({"-p", "3"});
  EXPECT_EQ(probe_lines(client(*mps, ""), {"init", "ctx"}), "init 0\nctx 0\n");
  EXPECT_EQ(status(*mps, "uid_0"), "Ready");
  EXPECT_TRUE(exists(mps->pipe() + "/uid_0/control"));
  Process other({"/usr/bin/setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all",
                 GPUSIM_PROBE, "init", "ctx"},
                client(*mps, ""));
  EXPECT_EQ(other.line(), "init 0");
  EXPECT_EQ(status(*mps, "uid_65534"), "Ready") << "several servers at once, unlike v2";
  Process foreign({"/usr/bin/setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all",
                   GPUSIM_PROBE, "init"},
                  client(*mps, "uid_0"));
  EXPECT_EQ(foreign.line(), "init 800") << "another user's server";
}

TEST_F(MpsV3, Clients) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s", "--allowed-devices=" + driver.uuid(0)});
  ask(*mps, {"namespace", "create", "n", "--server=s"});
  const auto held = probe(client(*mps, "s/n"), {"init", "ctx", "hold", "sync"});
  for (int i = 0; i < 3; ++i) held->line();
  const std::string pid = std::to_string(held->pid());
  char target[64] = {};
  ASSERT_GT(readlink("/proc/self/ns/pid", target, sizeof target - 1), 0);
  std::string linux_ns(target + 5);
  linux_ns.pop_back();
  const std::string command = std::string(GPUSIM_PROBE) + " init ctx hold sync";
  const struct {
    const char* field;
    std::string value;
  } kFields[] = {{"pid", pid},           {"server", "s"},  {"device", "0"},
                 {"linux-ns", linux_ns}, {"maws-ns", "n"}, {"cmd", command}};
  for (const auto& test : kFields) {
    EXPECT_EQ(ask(*mps, {"client", "get", pid, test.field}), test.value + "\n") << test.field;
  }
  EXPECT_NE(ask(*mps, {"client", "get", pid, "pci-id"}).find(":00.0\n"), std::string::npos);
  EXPECT_NE(
      call(*mps, {"client", "get", pid, "color"}).errors.find("no field 'color': pid, server"),
      std::string::npos);
  const std::string row = pid + ",s,0,n," + command + "\n";
  EXPECT_EQ(ask(*mps, {"client", "list", "--server=s", "--format=csv,noheader"}), row);
  EXPECT_EQ(ask(*mps, {"client", "list", "--all", "--format=csv"}),
            "pid,server,device,namespace,cmd\n" + row);
  EXPECT_EQ(call(*mps, {"server", "delete", "s"}).errors,
            "server s has 1 clients; --force drops "
            "them\n");
  EXPECT_EQ(call(*mps, {"client", "terminate", pid}).exit_code, 0);
  held->write("\n");
  EXPECT_EQ(held->line(), "sync 810");
}

// Another server's end is no answer for a client that this one is still to terminate.
TEST_F(MpsV3, TerminateWhileAnotherServerEnds) {
  const auto mps = start();
  for (const char* server : {"a", "b"}) {
    ask(*mps, {"server", "create", server});
    ASSERT_TRUE(eventually([&] { return status(*mps, server) == "Ready"; }));
  }
  const auto held = probe(client(*mps, "a"), {"init", "ctx", "hold"});
  for (int i = 0; i < 3; ++i) held->line();
  const std::string pid = std::to_string(held->pid());
  ASSERT_TRUE(eventually([&] { return ask(*mps, {"client", "get", pid, "server"}) == "a\n"; }));
  const pid_t slow = std::stoi(pid_of(*mps, "a"));
  const pid_t other = std::stoi(pid_of(*mps, "b"));
  ASSERT_EQ(::kill(slow, SIGSTOP), 0);
  Process console({binary("nvidia-cuda-mps-control"), "client", "terminate", pid},
                  mps->environment());
  ASSERT_TRUE(eventually(
      [&] { return mps->control_log().find("Cmd:client terminate " + pid) != std::string::npos; }));
  ASSERT_EQ(::kill(other, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return status(*mps, "b") == "Stopped"; }));
  ASSERT_EQ(::kill(slow, SIGCONT), 0);
  EXPECT_EQ(console.wait(), 0);
  EXPECT_EQ(console.output(), "0\n");
}

// By server, in its own order.
TEST_F(MpsV3, Devices) {
  const auto mps = start();
  ask(*mps, {"server", "create", "a", "--allowed-devices=1"});
  ask(*mps,
      {"server", "create", "b", "--allowed-devices=" + driver.uuid(1) + "," + driver.uuid(0)});
  ASSERT_TRUE(eventually([&] { return status(*mps, "a") == "Ready"; }));
  ASSERT_TRUE(eventually([&] { return status(*mps, "b") == "Ready"; }));
  const std::string all = ask(*mps, {"device", "list", "--format=csv"});
  EXPECT_EQ(all.substr(0, all.find('\n')),
            "Ordinal,Server,PCI ID,Device UUID,Name,Total SMs,Total Chunks,Attributes");
  const std::string of_b = ask(*mps, {"device", "list", "--server=b", "--format=csv,noheader"});
  EXPECT_NE(of_b.find("," + driver.uuid(1) + ",NVIDIA L4,58,29,-\n1,b,"), std::string::npos)
      << of_b;
  EXPECT_NE(all.find("0,a,"), std::string::npos);
  EXPECT_EQ(call(*mps, {"device", "list", "--server=none"}).errors, "no server none\n");
}

TEST_F(MpsV3, Features) {
  const auto mps = start();
  EXPECT_EQ(ask(*mps, {"feature", "describe", "--format=csv"}),
            "feature,state,module,covers\n"
            "memacct,enabled (default),memacct,-\n"
            "context-share,enabled (default),context-share,-\n");
  ask(*mps, {"feature", "disable", "context-share"});
  EXPECT_EQ(ask(*mps, {"feature", "describe", "context-share", "--format=csv,noheader"}),
            "context-share,disabled,context-share,-\n");
  ask(*mps, {"feature", "enable", "context-share"});
  EXPECT_EQ(ask(*mps, {"feature", "describe", "context-share", "--format=table,noheader"}),
            "context-share  enabled (default)  context-share  -\n");
  EXPECT_EQ(ask(*mps, {"memacct", "describe", "--format=csv,noheader"}), "audit_log,false\n");
  ask(*mps, {"memacct", "set", "audit_log=true"});
  EXPECT_EQ(ask(*mps, {"memacct", "describe", "--format=csv,noheader"}), "audit_log,true\n");
}

// "<module> help" and "<module> <verb> help".
TEST_F(MpsV3, Help) {
  const auto mps = start();
  EXPECT_EQ(ask(*mps, {"namespace", "create", "help"}),
            "usage: namespace create <name> --server=NAME\n");
  const std::string usages = ask(*mps, {"sm-partition", "help"});
  EXPECT_EQ(std::count(usages.begin(), usages.end(), '\n'), 3);
}

TEST_F(MpsV3, DeleteByForce) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s"});
  const auto held = probe(client(*mps, "s"), {"init", "ctx", "hold", "sync"});
  for (int i = 0; i < 3; ++i) held->line();
  EXPECT_EQ(call(*mps, {"server", "delete", "s", "--force"}).exit_code, 0);
  held->write("\n");
  EXPECT_EQ(held->line(), "sync 806");
}

// Measured on 615.71.09: a server whose GPU is gone disappears, and its clients run without MPS.
TEST_F(MpsV3, ServerOfALostGpuDisappears) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s", "--allowed-devices=GPU-00000000-0000"});
  EXPECT_TRUE(eventually([&] {
    return ask(*mps, {"server", "list", "--format=csv,noheader"}).empty();
  }));
  EXPECT_FALSE(exists(mps->pipe() + "/s"));
  EXPECT_EQ(free_mib(*mps, "s", "0=1G"), info(22563 - 128));
}

// A killed server comes back with its next client; the daemon lives on.
TEST_F(MpsV3, KilledServer) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s"});
  ask(*mps, {"server", "set", "s", "--pinned-memory-limit=1G"});
  ASSERT_TRUE(eventually([&] { return status(*mps, "s") == "Ready"; }));
  ASSERT_EQ(::kill(std::stoi(pid_of(*mps, "s")), SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return status(*mps, "s") == "Stopped"; }));
  EXPECT_EQ(free_mib(*mps, "s"), info(1024 - 128));
  EXPECT_EQ(status(*mps, "s"), "Ready");
}

TEST_F(MpsV3, Toml) {
  const std::string file = driver.dir() + "/mps.toml";
  std::ofstream(file) << R"(schema_version = "1.0"
[servers.training]
allowed_devices          = ")"
                      << driver.uuid(0) << R"("
pinned_memory_limit      = "10G"
active_thread_percentage = "50"
client_priority          = "1"
uid                      = )"
                      << getuid() << R"(
locality_domains         = false
[servers.training.namespaces.high_priority]
pinned_memory_limit      = "5G"
active_thread_percentage = "25"
[servers.training.namespaces.default]
pinned_memory_limit      = "3G"
[features.memacct]
enabled = true
audit_log = true
)";
  const auto mps = start({"-p", "3", "-a", file});
  ASSERT_TRUE(eventually([&] { return status(*mps, "training") == "Ready"; }));
  EXPECT_EQ(free_mib(*mps, "training"), info(3072 - 128)) << "the default namespace's own";
  EXPECT_EQ(free_mib(*mps, "training/high_priority"), info(5120 - 128));
  EXPECT_EQ(ask(*mps, {"namespace", "list", "--server=training", "--format=csv,noheader"}),
            "default,training,Ready,3G,50.0,1," + mps->pipe() + "/training/default\n" +
                "high_priority,training,Ready,5G,25.0,0," + mps->pipe() +
                "/training/high_priority\n");
  EXPECT_EQ(ask(*mps, {"memacct", "describe", "--format=csv,noheader"}), "audit_log,true\n");
}

TEST_F(MpsV3, BadToml) {
  const std::string head = "schema_version = \"1.0\"\n";
  const struct {
    std::string text;
    const char* want;
  } kCases[] = {
      {"", "schema_version is \"1.0\""},
      {"schema_version = 1.0\n", "schema_version is a string"},
      {head + "[servers.Big]\n", "servers.Big: a name is of lower case"},
      {head + "[servers.a]\nmemory = \"1G\"\n", "servers.a.memory is not known"},
      {head + "[servers.a]\npinned_memory_limit = \"2GX\"\n",
       "servers.a.pinned_memory_limit: '2GX' is no memory limit"},
      {head + "[servers.a]\npinned_memory_limit = 5\n",
       "servers.a.pinned_memory_limit is a string"},
      {head + "[servers.a]\nactive_thread_percentage = \"0\"\n",
       "servers.a.active_thread_percentage: '0' is no active thread percentage"},
      {head + "[servers.a]\nuid = -1\n", "servers.a.uid is a user id"},
      {head + "[servers.a]\nallowed_devices = \"0,x\"\n",
       "servers.a.allowed_devices: 'x' is no device"},
      {head + "[[servers.a.devices]]\nuuid = \"GPU-1\"\n[[servers.a.devices.sm_partitions]]\n"
              "name = \"p\"\nchunks = 0\n",
       "chunks is a whole number from 1"},
      {head + "[[servers.a.devices]]\nuuid = \"GPU-1\"\n[[servers.a.devices.sm_partitions]]\n"
              "name = \"p\"\nchunks = 1\n[[servers.a.devices.sm_partitions]]\nname = \"p\"\n"
              "chunks = 1\n",
       "'p' is there twice"},
      {head + "[servers.a]\nlocality_domains = true\n[[servers.a.devices]]\nuuid = \"GPU-1\"\n"
              "[[servers.a.devices.sm_partitions]]\nname = \"p\"\nchunks = 1\n",
       "locality_domains and SM partitions exclude each other"},
      {head + "[servers.a.namespaces.b]\nuid = 1\n", "servers.a.namespaces.b.uid is not known"},
      {head + "[servers.a]\nnamespaces = 3\n", "servers.a.namespaces is a table"},
      {head + "[servers.a]\n[servers.a]\n", "line 3:"},
      {head + "[servers.a\n", "line 2:"},
      {head + "[features.other]\n", "features.other is not known"},
  };
  const std::string file = driver.dir() + "/bad.toml";
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = driver.dir() + "/p";
  environment["CUDA_MPS_LOG_DIRECTORY"] = driver.dir() + "/l";
  for (const auto& test : kCases) {
    std::ofstream(file) << test.text;
    const Outcome outcome =
        run({binary("nvidia-cuda-mps-control"), "-f", "-p", "3", "-a", file}, environment);
    EXPECT_EQ(outcome.exit_code, 1) << test.text;
    EXPECT_NE(outcome.errors.find(test.want), std::string::npos) << outcome.errors;
  }
  std::ofstream(file) << std::string(2 << 20, '#');
  const struct {
    std::string path;
    const char* want;
  } kFiles[] = {{"/nowhere", "no such file"},
                {"/dev/zero", "no such file"},
                {driver.dir(), "no such file"},
                {file, "at most 1048576 bytes"}};
  for (const auto& test : kFiles) {
    const Outcome outcome =
        run({binary("nvidia-cuda-mps-control"), "-f", "-p", "3", "-a", test.path}, environment);
    EXPECT_EQ(outcome.exit_code, 1) << test.path;
    EXPECT_NE(outcome.errors.find(test.want), std::string::npos) << outcome.errors;
  }
}

// The device-memory cgroup: hard and soft limit and current use (MPS documentation, v3 memory
// partitioning); it holds beside the namespace's limit.
TEST_F(MpsV3, MemoryAccounting) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s", "--allowed-devices=" + driver.uuid(0)});
  const std::string cgroup = own_cgroup();
  if (cgroup.empty()) GTEST_SKIP() << "no cgroup";
  ASSERT_EQ(gpusim(driver, {"smi", "memory-limits", "--set", "-n", cgroup, "--hard-limit", "1000",
                            "--soft-limit", "500", "-i", driver.uuid(0)})
                .exit_code,
            0);
  ASSERT_TRUE(eventually([&] { return status(*mps, "s") == "Ready"; }));
  const std::string shown =
      gpusim(driver, {"smi", "memory-limits", "--get", "-n", cgroup, "-i", driver.uuid(0)}).output;
  EXPECT_NE(shown.find("hard limit: 1000 MiB"), std::string::npos) << shown;
  const size_t at = shown.find("current used: ");
  ASSERT_NE(at, std::string::npos) << shown;
  const int used = std::stoi(shown.substr(at + 14));
  EXPECT_EQ(probe_lines(client(*mps, "s"), {"init", "ctx", "fill"}),
            "init 0\nctx 0\nfill 2 " + std::to_string(1000 - used - 128) + "\n");
}

TEST_F(MpsV3, BadCommands) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s"});
  const struct {
    std::vector<std::string> command;
    const char* want;
  } kCases[] = {
      {{"dance"}, "unknown module 'dance'"},
      {{"server"}, "server takes one of: create, delete, list, set, get"},
      {{"server", "dance"}, "server takes one of"},
      {{"server", "create"}, "server create takes a name or --uid"},
      {{"server", "create", "a", "b"}, "usage: server create [<name>]"},
      {{"server", "create", "Upper"}, "'Upper' is no server name"},
      {{"server", "create", "../x"}, "'../x' is no server name"},
      {{"server", "create", std::string(65, 'a')}, "is no server name"},
      {{"server", "create", "s"}, "server s exists"},
      {{"server", "create", "x", "--uid=-1"}, "--uid is a user id, not '-1'"},
      {{"server", "create", "x", "--allowed-devices=0,x"}, "'x' is no device"},
      {{"server", "create", "x", "--uid=4711"}, "is allowed in multiuser mode"},
      {{"server", "create", "x", "--locality-domains=maybe"}, "is true or false, not 'maybe'"},
      {{"server", "create", "x", "--pinned-memory-limit=1G"}, "unknown option"},
      {{"server", "set", "s"}, "at least one option"},
      {{"namespace", "set", "default", "--server=s"}, "at least one option"},
      {{"server", "get", "s", "color"}, "no field 'color': name, uid, pid"},
      {{"sm-partition", "create", "p", "--server=s", "--chunks=1"}, "--device=UUID or ordinal is"},
      {{"sm-partition", "create", "p", "--server=s", "--device=0", "--chunks=0"}, "--chunks is"},
      {{"sm-partition", "create", "P", "--server=s", "--device=0"}, "no partition name"},
      {{"sm-partition", "create", "p", "--server=none", "--device=0"}, "no server none"},
      {{"sm-partition", "delete", "p", "--server=s", "--device=0"}, "no partition p"},
      {{"feature", "enable", "all"}, "no feature 'all'"},
      {{"memacct", "set", "color=red"}, "unknown option --color"},
      {{"memacct", "set", "audit_log=perhaps"}, "is true or false"},
      {{"server", "create", "x", "--color=red"}, "unknown option --color"},
      {{"server", "create", "x", "--uid"}, "--uid takes a value"},
      {{"server", "delete", "s", "--force=1"}, "--force takes no value"},
      {{"server", "delete", "none"}, "no server none"},
      {{"server", "set", "s", "--pinned-memory-limit=2"}, "'2' is no memory limit"},
      {{"server", "set", "s", "--client-priority=2"}, "'2' is no client priority"},
      {{"server", "list", "--format=xml"},
       "--format is table or csv, with ,noheader or without, not 'xml'"},
      {{"namespace", "create", "n"}, "no server"},
      {{"namespace", "create", "default", "--server=s"}, "namespace default exists"},
      {{"namespace", "delete", "default", "--server=s"}, "the default namespace stays"},
      {{"namespace", "delete", "n", "--server=s"}, "no namespace n"},
      {{"client", "list", "--server=none"}, "no server none"},
      {{"client", "get", "1", "pid"}, "no client 1"},
      {{"client", "terminate", "1"}, "no client 1"},
      {{"sm-partition", "dance"}, "sm-partition takes one of: create, delete, list"},
      {{"context-share", "list"}, "no verb of context-share is documented"},
      {{"get_server_list"}, "unknown module 'get_server_list'"},
  };
  for (const auto& test : kCases) {
    const Outcome outcome = call(*mps, test.command);
    EXPECT_EQ(outcome.exit_code, 1) << test.want;
    EXPECT_EQ(outcome.output, "") << test.want;
    EXPECT_NE(outcome.errors.find(test.want), std::string::npos) << outcome.errors;
  }
  EXPECT_NE(ask(*mps, {"server", "list", "--format=csv"}).find("\ns,"), std::string::npos);
}

// Whatever is asked, the daemon answers with 0 or 1 and lives; a seeded stream of almost-commands.
TEST_F(MpsV3, AnyWordsAreAnswered) {
  const auto mps = start();
  ask(*mps, {"server", "create", "s"});
  const std::vector<std::string> kWords = {"server",
                                           "namespace",
                                           "client",
                                           "device",
                                           "sm-partition",
                                           "describe",
                                           "help",
                                           "chunks=3",
                                           "--device=0",
                                           "--device=GPU-",
                                           "--include-remainder=true",
                                           "feature",
                                           "memacct",
                                           "context-share",
                                           "create",
                                           "delete",
                                           "set",
                                           "get",
                                           "list",
                                           "terminate",
                                           "s",
                                           "default",
                                           "n",
                                           "--server=s",
                                           "--server",
                                           "--all",
                                           "--force",
                                           "--uid=1",
                                           "--uid=x",
                                           "--format=csv",
                                           "--format=csv,noheader",
                                           "--format=",
                                           "--pinned-memory-limit=1G",
                                           "--pinned-memory-limit=0=1G,=",
                                           "--=",
                                           "--allowed-devices=GPU-0",
                                           "--active-thread-percentage=1e9",
                                           "-1",
                                           "99999999999999999999",
                                           "%s%n",
                                           "\x01\xff",
                                           std::string(3000, 'a'),
                                           "gpusim",
                                           "show"};
  uint32_t random = 4711;
  for (int round = 0; round < 30; ++round) {
    std::string input;
    for (int line = 0; line < 10; ++line) {
      std::string command;
      for (uint32_t word = 0; word <= 1 + (random >> 8) % 4; ++word) {
        random = random * 1664525 + 1013904223;
        const std::string& next = kWords[(random >> 10) % kWords.size()];
        if (command.size() + next.size() < 4000) command += next + " ";
      }
      input += command + "\n";
    }
    const int exit_code = mps->console(input).exit_code;
    EXPECT_TRUE(exit_code == 0 || exit_code == 1) << input;
  }
  EXPECT_EQ(call(*mps, {"server", "list"}).exit_code, 0);
}

// -p 3, or the variable, which wins; later calls follow the running daemon; -q ends it.
TEST_F(MpsV3, Protocol) {
  Environment environment = driver.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = driver.dir() + "/p";
  environment["CUDA_MPS_LOG_DIRECTORY"] = driver.dir() + "/l";
  environment["CUDA_MPS_PROTOCOL_VERSION"] = "3";
  const std::string control = binary("nvidia-cuda-mps-control");
  ASSERT_EQ(run({control, "-d", "-p", "2"}, environment).exit_code, 0);
  environment.erase("CUDA_MPS_PROTOCOL_VERSION");
  EXPECT_EQ(run({control, "server", "list"}, environment).exit_code, 0);
  EXPECT_EQ(run({control, "-q"}, environment).exit_code, 0);
  EXPECT_EQ(run({control, "-p", "4", "-d"}, environment).exit_code, 2);
  EXPECT_EQ(run({control, "-d"}, environment).exit_code, 0);
  EXPECT_EQ(run({control}, environment, "get_server_list").exit_code, 0) << "v2 by default";
  EXPECT_EQ(run({control, "--quit"}, environment).exit_code, 0);
}

}  // namespace
}  // namespace gpusim::test
