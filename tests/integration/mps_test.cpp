// MpsDaemon against the simulated driver's nvidia-cuda-mps-control.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../unit/adapters/temp_folder.h"
#include "adapters/mps_daemon.h"
#include "adapters/nvml_driver.h"
#include "base/process_identity.h"
#include "gpusim_process.h"

namespace cotenant::adapters {

using base::identify_process;
using base::ProcessIdentity;
namespace {

using base::ErrorCode;

class MpsTest : public testing::Test {
 protected:
  MpsTest() : gpusim_(folder_.path() + "/gpusim", "2xL4") {}

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(gpusim_.start());
    NvmlDriver driver(gpusim_bin() + "/libnvidia-ml.so.1");
    const auto gpus = driver.gpus();
    ASSERT_TRUE(gpus.has_value()) << gpus.error().message;
    for (const ports::GpuInfo& gpu : *gpus) uuids_.push_back(gpu.uuid);
    ASSERT_EQ(uuids_.size(), 2U);
    std::sort(uuids_.begin(), uuids_.end());
  }
  void TearDown() override {
    for (const std::string& uuid : uuids_) {
      const auto stopped = make()->stop(uuid);
      EXPECT_TRUE(stopped.has_value()) << stopped.error().message;
    }
  }

  std::unique_ptr<MpsDaemon> make(
      std::chrono::milliseconds console_timeout = std::chrono::milliseconds(10000)) const {
    MpsDaemonOptions options;
    options.run_dir = folder_.path() + "/run";
    options.control_binary = gpusim_bin() + "/nvidia-cuda-mps-control";
    options.environment = {{"GPUSIM_DIR", gpusim_.dir()}};
    options.console_timeout = console_timeout;
    return std::make_unique<MpsDaemon>(options);
  }

  MpsRecord record(const MpsDaemon& daemon, const std::string& uuid) const {
    const std::filesystem::path socket = daemon.control_socket(uuid);
    const auto read = MpsDirectory(socket.parent_path().parent_path()).read_record();
    if (!read) ADD_FAILURE() << "no record beside " << socket;
    return read.value_or(MpsRecord{});
  }

  TempFolder folder_;
  GpusimProcess gpusim_;
  std::vector<std::string> uuids_;
};

TEST_F(MpsTest, OneDaemonPerGpuFromStartToStop) {
  const auto daemon = make();
  for (const std::string& uuid : uuids_) {
    const auto started = daemon->start(uuid);
    ASSERT_TRUE(started.has_value()) << started.error().message;
    const auto probed = daemon->probe(uuid);
    EXPECT_TRUE(probed.has_value()) << probed.error().message;
    struct stat status {};
    ASSERT_EQ(::stat(daemon->control_socket(uuid).c_str(), &status), 0);
    EXPECT_TRUE(S_ISSOCK(status.st_mode));
    EXPECT_EQ(status.st_mode & 0666, 0666U) << "clients run as other users";
    EXPECT_TRUE(std::filesystem::exists(
        std::filesystem::path(daemon->control_socket(uuid)).parent_path().parent_path() /
        "log/server.log"));
  }
  EXPECT_EQ(daemon->running(), uuids_);

  const MpsRecord first = record(*daemon, uuids_[0]);
  EXPECT_TRUE(first.server.has_value()) << "the server is the daemon's child";
  ASSERT_TRUE(daemon->stop(uuids_[0]).has_value());
  EXPECT_FALSE(is_alive(first.daemon));
  EXPECT_FALSE(identify_process(first.server_pid).has_value());
  EXPECT_FALSE(std::filesystem::exists(daemon->control_socket(uuids_[0])));
  EXPECT_EQ(daemon->running(), std::vector<std::string>{uuids_[1]});
  EXPECT_TRUE(daemon->probe(uuids_[1]).has_value()) << "the other GPU is not touched";
}

TEST_F(MpsTest, AdoptedByTheNextAgent) {
  ASSERT_TRUE(make()->start(uuids_[0]).has_value());
  const auto next = make();
  EXPECT_EQ(next->running(), std::vector<std::string>{uuids_[0]});
  const MpsRecord before = record(*next, uuids_[0]);
  ASSERT_TRUE(next->start(uuids_[0]).has_value());
  EXPECT_EQ(record(*next, uuids_[0]).daemon, before.daemon);
  EXPECT_EQ(record(*next, uuids_[0]).server_pid, before.server_pid);
  EXPECT_TRUE(next->probe(uuids_[0]).has_value());
}

TEST_F(MpsTest, KilledDaemonIsReplaced) {
  const auto daemon = make();
  ASSERT_TRUE(daemon->start(uuids_[0]).has_value());
  const MpsRecord before = record(*daemon, uuids_[0]);
  ASSERT_EQ(::kill(before.daemon.pid, SIGKILL), 0);
  ASSERT_TRUE(wait_until_gone(before.daemon, std::chrono::milliseconds(5000)));
  const auto probed = daemon->probe(uuids_[0]);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  const auto started = daemon->start(uuids_[0]);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_TRUE(daemon->probe(uuids_[0]).has_value());
}

// A daemon that is there but does not run: it accepts and never answers.
TEST_F(MpsTest, StoppedDaemonIsATimeoutAndCanBeReplaced) {
  ASSERT_TRUE(make()->start(uuids_[0]).has_value());
  const auto impatient = make(std::chrono::milliseconds(500));
  const MpsRecord before = record(*impatient, uuids_[0]);
  ASSERT_EQ(::kill(before.daemon.pid, SIGSTOP), 0);
  const auto probed = impatient->probe(uuids_[0]);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kTimeout) << probed.error().message;
  ASSERT_TRUE(impatient->stop(uuids_[0]).has_value());
  EXPECT_FALSE(is_alive(before.daemon));
  EXPECT_TRUE(make()->start(uuids_[0]).has_value());
}

TEST_F(MpsTest, KilledServerIsSeenByTheProbe) {
  const auto daemon = make();
  ASSERT_TRUE(daemon->start(uuids_[0]).has_value());
  const MpsRecord before = record(*daemon, uuids_[0]);
  ASSERT_TRUE(before.server.has_value());
  ASSERT_EQ(::kill(before.server_pid, SIGKILL), 0);
  ASSERT_TRUE(wait_until_gone(*before.server, std::chrono::milliseconds(5000)));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  base::Status probed;
  while ((probed = daemon->probe(uuids_[0])) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();  // the daemon learns of it in its own time
  }
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable) << probed.error().message;
}

// What gpusim's command and example say and do, with GPUSIM_DIR of this test.
class Program {
 public:
  explicit Program(std::vector<std::string> words, std::vector<std::string> environment = {},
                   const std::string& output = "/dev/null") {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int fd = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      ::dup2(fd, STDOUT_FILENO);
      for (std::string& variable : environment) ::putenv(variable.data());
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~Program() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  void stop() { ::kill(pid_, SIGSTOP); }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = -1;
};

int gpusim_command(std::vector<std::string> words) {
  words.insert(words.begin(), gpusim_bin() + "/gpusim");
  return Program(words).wait();
}

template <typename Condition>
bool until(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// A fatal fault: the server says FAULT and keeps saying it while one client stays.
TEST_F(MpsTest, FaultIsSeenUntilTheClientsHaveGone) {
  const auto daemon = make();
  ASSERT_TRUE(daemon->start(uuids_[0]).has_value());
  Program client(
      {gpusim_bin() + "/../examples/gpu-worker/gpu-worker", "--memory-mib", "100"},
      {"CUDA_MPS_PIPE_DIRECTORY=" +
           std::filesystem::path(daemon->control_socket(uuids_[0])).parent_path().string(),
       "LD_LIBRARY_PATH=" + gpusim_bin()},
      folder_.path() + "/client.log");
  ASSERT_TRUE(until([&] {
    std::ifstream log(folder_.path() + "/client.log");
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    return text.find("holds") != std::string::npos;
  }));
  client.stop();  // it will not exit
  ASSERT_EQ(gpusim_command({"fault", "--gpu", uuids_[0]}), 0);
  ASSERT_TRUE(until([&] { return !daemon->probe(uuids_[0]).has_value(); }));
  const auto probed = daemon->probe(uuids_[0]);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(probed.error().message.find("FAULT"), std::string::npos) << probed.error().message;
  const auto started = daemon->start(uuids_[0]);
  ASSERT_FALSE(started.has_value()) << "a server in FAULT is not waited for";
  EXPECT_EQ(started.error().code, ErrorCode::kUnavailable);
}
}  // namespace
}  // namespace cotenant::adapters
