// Static SM partitions of both protocols (NVIDIA's MPS documentation: v2 interface, v3 interface,
// "when to use MPS", "common tasks"). An L4 has 58 multiprocessors: 14 chunks of 4 and 2 that are left
// over under v2, 29 chunks of 2 under v3; an H100 has 132: 16 chunks of 8 and 4 left over.
#include <gtest/gtest.h>

#include <fstream>

#include "common/driver_client.h"
#include "tests/harness.h"

namespace gpusim::test {
namespace {

const std::string kZeros(33, 'A');

Environment with_partition(Environment environment, const std::string& partition) {
  environment["CUDA_MPS_SM_PARTITION"] = partition;
  return environment;
}

std::string one_blank(std::string text) {
  for (size_t at; (at = text.find("  ")) != std::string::npos;) text.erase(at, 1);
  for (size_t at; (at = text.find(" \n")) != std::string::npos;) text.erase(at, 1);
  return text;
}

TEST(MpsPartitions, AddChooseRemove) {
  Gpusimd driver("1xL4,1xT4", {"--driver", "590"});
  Mps mps(driver, {}, {"-M", "-S"});
  const std::string gpu = driver.uuid(0);
  const std::string first = gpu + "/Dx4" + kZeros;
  const struct {
    std::string command;
    std::string want;
  } kCases[] = {
      {"sm_partition add " + gpu + " 8", first + "\n"},
      {"sm_partition add " + gpu + " 7", "Invalid argument\n"},  // 6 are left
      {"sm_partition add " + gpu.substr(0, 12) + " 2", gpu + "/Cx4" + kZeros + "\n"},
      {"sm_partition rm " + gpu + " " + gpu + "/Cx4" + kZeros, ""},
      {"sm_partition rm " + gpu.substr(0, 12) + " Cx4" + kZeros, "Invalid argument\n"},
      {"sm_partition add " + gpu + " 0", "Invalid argument\n"},
      {"sm_partition add " + gpu + " -1", "Invalid argument\n"},
      {"sm_partition add " + gpu + " 99999999999", "Invalid argument\n"},
      {"sm_partition add GPU-00000000 1", "Invalid argument\n"},
      {"sm_partition add GPU- 1", "Invalid argument\n"},
      {"sm_partition add " + driver.uuid(1) + " 1", "Invalid argument\n"},  // Turing
      {"sm_partition dance " + gpu + " 1", "Invalid argument\n"},
  };
  for (const auto& test : kCases) EXPECT_EQ(mps.ask(test.command), test.want) << test.command;
  mps.start_server();
  const auto client =
      probe(with_partition(mps.client(), first), {"init", "ctx", "hold", "spin:100000"});
  EXPECT_EQ(client->line(), "init 0");
  EXPECT_EQ(client->line(), "ctx 0");
  client->line();
  const std::string short_gpu = gpu.substr(0, 12);
  EXPECT_EQ(one_blank(mps.ask("lspart")),
            "GPU Partition free used free used clients\n chunk chunk SM SM\n" + short_gpu +
                " - 6 8 26 32 -\n" + short_gpu + " Dx4" + kZeros + " - 8 - 32 Yes\n");
  EXPECT_EQ(mps.ask("sm_partition rm " + gpu + " Dx4" + kZeros), "Partition is in use\n");
  client->write("\n");
  EXPECT_TRUE(took_ms(client->line(), 100 * 58 / 32)) << "32 of 58";
  // The last partition gets what makes no whole chunk, too.
  EXPECT_EQ(mps.ask("sm_partition add " + gpu + " 6"), gpu + "/Bx4" + kZeros + "\n");
  EXPECT_NE(one_blank(mps.ask("lspart")).find("Bx4" + kZeros + " - 6 - 26 -\n"), std::string::npos);
}

// "All MPS clients must set the variable": contexts fail with INVALID_RESOURCE_CONFIGURATION (915);
// a name that is no partition counts as none (ours). A GPU that takes no partitions needs none.
TEST(MpsPartitions, ClientsMustHaveOne) {
  Gpusimd driver("1xL4,1xT4", {"--driver", "590"});
  Mps mps(driver, {}, {"-M", "-S"});
  const std::string gpu = driver.uuid(0);
  mps.ask("sm_partition add " + gpu + " 4");
  EXPECT_EQ(probe_lines(mps.client(), {"init", "ctx:0", "ctx:1"}), "init 0\nctx 915\nctx 0\n");
  for (const std::string& wrong : {gpu + "/nowhere", std::string("Dx4"), gpu + "/",
                                   driver.uuid(1) + "/Dx4" + kZeros, std::string(500, 'x')}) {
    EXPECT_EQ(probe_lines(with_partition(mps.client(), wrong), {"init", "ctx:0"}),
              "init 0\nctx 915\n")
        << wrong;
  }
  EXPECT_EQ(probe_lines(with_partition(mps.client(), gpu.substr(0, 14) + "/Dx4" + kZeros),
                        {"init", "ctx:0"}),
            "init 0\nctx 0\n")
      << "a unique beginning of the UUID will do";
}

TEST(MpsPartitions, NeedTheFlagAndTheDriver) {
  Gpusimd driver("1xL4");
  Mps mps(driver);
  EXPECT_EQ(mps.ask("lspart"), "Unknown command: lspart\n");
  Environment environment = mps.environment();
  environment["CUDA_MPS_PIPE_DIRECTORY"] = driver.dir() + "/other";
  const Outcome outcome = run({binary("nvidia-cuda-mps-control"), "-f", "-S"}, environment);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("-S needs CUDA 13.1"), std::string::npos);
}

// Driver 610 and later: a fault that a multiprocessor raises stays within the faulting client's
// partition, and the server goes on; earlier, and for a fault of the memory system, all are hit
// ("common tasks": partial error isolation, no guarantee. Which faults count as raised by a
// multiprocessor is ours: Xid 13).
TEST(MpsPartitions, FaultsStayInThePartition) {
  const struct {
    const char* driver;
    const char* kernel;
    const char* neighbour;
    const char* status;
  } kCases[] = {{"610.43.02", "launch_failed", "sync 0", "ACTIVE\n"},
                {"610.43.02", "illegal_address", "sync 700", "FAULT\n"},
                {"590", "launch_failed", "sync 719", "FAULT\n"}};
  for (const auto& test : kCases) {
    Gpusimd driver("1xL4", {"--driver", test.driver});
    Mps mps(driver, {}, {"-M", "-S"});
    std::string left = mps.ask("sm_partition add " + driver.uuid(0) + " 4");
    std::string right = mps.ask("sm_partition add " + driver.uuid(0) + " 4");
    left.pop_back();
    right.pop_back();
    const std::string server = mps.start_server();
    const auto neighbour =
        probe(with_partition(mps.client(), right), {"init", "ctx", "hold", "sync", "hold"});
    const auto housemate =
        probe(with_partition(mps.client(), left), {"init", "ctx", "hold", "sync", "hold"});
    // They are there before the fault: a server in FAULT takes nobody.
    for (const auto* client : {&neighbour, &housemate}) {
      EXPECT_EQ((*client)->line(), "init 0");
      EXPECT_EQ((*client)->line(), "ctx 0");
      EXPECT_EQ((*client)->line(), "hold");
    }
    const auto culprit =
        probe(with_partition(mps.client(), left),
              {"init", "ctx", std::string("launch:") + test.kernel, "sync", "hold"});
    for (int i = 0; i < 3; ++i) culprit->line();
    EXPECT_NE(culprit->line(), "sync 0") << test.kernel;
    housemate->write("\n");
    EXPECT_NE(housemate->line(), "sync 0") << "the same partition";
    neighbour->write("\n");
    EXPECT_EQ(neighbour->line(), test.neighbour) << test.driver << " " << test.kernel;
    EXPECT_TRUE(eventually([&] { return mps.ask("get_server_status " + server) == test.status; }))
        << test.driver;
  }
}

class MpsV3Partitions : public ::testing::Test {
 protected:
  static Outcome call(const Mps& mps, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), binary("nvidia-cuda-mps-control"));
    return run(arguments, mps.environment());
  }
  static bool is_ready(const Mps& mps, const std::string& server) {
    return eventually([&] {
      return call(mps, {"server", "get", server, "status"}).output == "Ready\n";
    });
  }
  static Environment client(const Mps& mps, const std::string& server,
                            const std::string& partition) {
    Environment environment = mps.client();
    environment["CUDA_MPS_PIPE_DIRECTORY"] = mps.pipe() + "/" + server;
    if (!partition.empty()) environment["CUDA_MPS_SM_PARTITION"] = partition;
    return environment;
  }
};

TEST_F(MpsV3Partitions, CreateListDelete) {
  Gpusimd driver("1xH100,1xL4", {"--driver", "615"});
  Mps mps(driver, {}, {"-p", "3", "-m"});
  const std::string gpu = driver.uuid(0);
  call(mps, {"server", "create", "training"});
  ASSERT_TRUE(is_ready(mps, "training"));
  EXPECT_EQ(probe_lines(client(mps, "training", ""), {"init", "ctx"}), "init 0\nctx 0\n")
      << "nothing is divided yet";
  EXPECT_EQ(call(mps, {"sm-partition", "create", "large", "--server=training", "--device=" + gpu,
                       "--chunks=4"})
                .output,
            "SM partition 'large' created on device " + gpu + " (sm-count=32)\n" +
                "CUDA_MPS_SM_PARTITION=" + gpu + "/Kp8" + kZeros + "\n");
  EXPECT_EQ(call(mps, {"sm-partition", "create", "rest", "--server=training", "--device=0",
                       "--chunks=11", "--include-remainder=true"})
                .output,
            "SM partition 'rest' created on device " + gpu + " (sm-count=92)\n" +
                "CUDA_MPS_SM_PARTITION=" + gpu + "/Jp8" + kZeros + "\n");
  EXPECT_EQ(
      call(mps, {"sm-partition", "create", "more", "--server=training", "--device=0", "--chunks=2"})
          .errors,
      "device " + gpu + " has 1 free chunks\n");
  EXPECT_EQ(
      call(mps, {"sm-partition", "list", "--server=training", "--all", "--format=csv"}).output,
      "server,device,name,chunks,sm-count,include-remainder,status,visible-uuid\n"
      "training," +
          gpu + ",large,4,32,false,created,Kp8" + kZeros + "\n" + "training," + gpu +
          ",rest,11,92,true,created,Jp8" + kZeros + "\n" + "training," + gpu +
          ",-,1,8,-,unallocated,-\n");
  EXPECT_EQ(
      call(mps, {"sm-partition", "list", "--device=" + driver.uuid(1), "--format=csv,noheader"})
          .output,
      "");
  EXPECT_EQ(probe_lines(client(mps, "training", ""), {"init", "ctx:0", "ctx:1"}),
            "init 0\nctx 915\nctx 0\n")
      << "only where the device is divided";
  const auto held =
      probe(client(mps, "training", gpu + "/Kp8" + kZeros), {"init", "ctx", "hold", "spin:100000"});
  for (int i = 0; i < 3; ++i) EXPECT_NE(held->line(), "");
  EXPECT_EQ(
      call(mps, {"sm-partition", "delete", "large", "--server=training", "--device=0"}).errors,
      "partition large is in use\n");
  EXPECT_EQ(call(mps, {"server", "set", "training", "--locality-domains=true"}).errors,
            "server training has SM partitions: no locality domains beside them\n");
  held->write("\n");
  EXPECT_TRUE(took_ms(held->line(), 100 * 132 / 32));
  EXPECT_EQ(held->wait(), 0);
  ASSERT_TRUE(eventually([&] {
    return call(mps, {"sm-partition", "delete", "large", "--server=training", "--device=0"})
               .output == "SM partition 'large' deleted from device " + gpu + "\n";
  }));
}

// Refused on a device with clients, and beside locality domains.
TEST_F(MpsV3Partitions, Refusals) {
  Gpusimd driver("2xL4", {"--driver", "615"});
  Mps mps(driver, {}, {"-p", "3", "-m"});
  call(mps, {"server", "create", "s"});
  call(mps, {"server", "create", "domains", "--locality-domains=true"});
  ASSERT_TRUE(is_ready(mps, "s"));
  const auto held = probe(client(mps, "s", ""), {"init", "ctx:0", "hold"});
  for (int i = 0; i < 3; ++i) held->line();
  ASSERT_TRUE(eventually([&] {
    return !call(mps, {"client", "list", "--format=csv,noheader"}).output.empty();
  }));
  EXPECT_EQ(
      call(mps, {"sm-partition", "create", "p", "--server=s", "--device=0", "--chunks=1"}).errors,
      "device " + driver.uuid(0) + " has active clients\n");
  EXPECT_EQ(
      call(mps, {"sm-partition", "create", "p", "--server=s", "--device=7", "--chunks=1"}).errors,
      "server s has no device 7\n");
  EXPECT_EQ(
      call(mps, {"sm-partition", "create", "p", "--server=domains", "--device=0", "--chunks=1"})
          .errors,
      "server domains has locality domains: no SM partitions beside them\n");
}

// From a file: configured before the server runs, created when it does, again after it was killed.
TEST_F(MpsV3Partitions, ConfiguredBeforeTheServerRuns) {
  Gpusimd driver("1xL4", {"--driver", "615"});
  const std::string gpu = driver.uuid(0);
  const std::string file = driver.dir() + "/mps.toml";
  std::ofstream(file) << "schema_version = \"1.0\"\n[servers.s]\n[[servers.s.devices]]\nuuid = \""
                      << gpu
                      << "\"\n[[servers.s.devices.sm_partitions]]\nname = \"large\"\nchunks = 9\n"
                      << "[[servers.s.devices.sm_partitions]]\nname = \"too_large\"\nchunks = 21\n";
  Mps mps(driver, {{"GPUSIM_MPS", "initializing_ms=1500"}}, {"-p", "3", "-m", "-a", file});
  const auto rows = [&] {
    return call(mps, {"sm-partition", "list", "--server=s", "--format=csv,noheader"}).output;
  };
  EXPECT_EQ(rows(), "s," + gpu + ",large,9,-,false,configured,-\ns," + gpu +
                        ",too_large,21,-,false,configured,-\n");
  ASSERT_TRUE(is_ready(mps, "s"));
  EXPECT_EQ(rows(), "s," + gpu + ",large,9,18,false,created,Kp8" + kZeros + "\ns," + gpu +
                        ",too_large,21,-,false,configured,-\ns," + gpu +
                        ",-,20,40,-,unallocated,-\n");
  EXPECT_NE(mps.control_log().find("SM partition too_large could not be created"),
            std::string::npos);
  call(mps, {"gpusim", "kill-server"});
  ASSERT_TRUE(
      eventually([&] { return rows().find("large,9,-,false,configured") != std::string::npos; }));
  // Meanwhile one is configured, and deleted, by the GPU's ordinal.
  EXPECT_EQ(call(mps, {"sm-partition", "create", "other", "--server=s", "--device=0", "--chunks=1"})
                .output,
            "SM partition 'other' configured on device 0\n");
  EXPECT_NE(rows().find(",other,1,"), std::string::npos);
  EXPECT_EQ(call(mps, {"sm-partition", "delete", "other", "--server=s", "--device=0"}).output,
            "SM partition 'other' deleted from device 0\n");
  EXPECT_EQ(rows().find(",other,1,"), std::string::npos);
  EXPECT_EQ(probe_lines(client(mps, "s", ""), {"init", "ctx"}), "init 0\nctx 915\n")
      << "its next client starts it, and the partition is back";
}

}  // namespace
}  // namespace gpusim::test
