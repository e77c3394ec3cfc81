#include "adapters/mps_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/mps_console.h"
#include "adapters/mps_directory.h"
#include "base/process_identity.h"
#include "fake_mps_control.h"
#include "temp_folder.h"

namespace cotenant::adapters {

using base::identify_process;
using base::ProcessIdentity;
using base::start_environment;
namespace {

using base::ErrorCode;
using std::chrono::milliseconds;

constexpr char kGpu[] = "GPU-1a2b3c4d-0000-1111-2222-333344445555";
constexpr char kTwin[] = "GPU-1a2b3c4d-9999-1111-2222-333344445555";  // begins like kGpu
constexpr char kOther[] = "GPU-deadbeef-0000-1111-2222-333344445555";

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (text) << "\nwithout: " << (part)

class MpsDaemonTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(control()) << kFakeMpsControl;
    ASSERT_EQ(::chmod(control().c_str(), 0755), 0);
  }

  // Whatever a test left: only processes that carry this test's own folder in their environment.
  void TearDown() override {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      const auto pipe = start_environment(pid, "CUDA_MPS_PIPE_DIRECTORY");
      if (pid > 0 && pipe && pipe->starts_with(folder_.path() + "/")) ::kill(pid, SIGKILL);
    }
  }

  std::string control() const { return folder_.path() + "/nvidia-cuda-mps-control"; }
  std::string run_dir() const { return folder_.path() + "/run"; }
  std::string gpu_folder() const { return run_dir() + "/mps/1a2b3c4d"; }
  std::string log(const std::string& name) const { return gpu_folder() + "/log/" + name; }

  std::unique_ptr<MpsDaemon> make(const std::string& mode = "works") const {
    MpsDaemonOptions options;
    options.run_dir = run_dir();
    options.control_binary = control();
    options.environment = {{"FAKE_MODE", mode}, {"CUDA_VISIBLE_DEVICES", "must not win"}};
    options.console_timeout = milliseconds(mode == "console-hangs" ? 300 : 5000);
    options.launch_timeout = milliseconds(mode == "launch-hangs" ? 300 : 10000);
    options.server_timeout =
        milliseconds(mode == "never-active" || mode == "no-server" ? 300 : 10000);
    options.stop_grace = milliseconds(mode.starts_with("ignores") ? 300 : 5000);
    return std::make_unique<MpsDaemon>(options);
  }

  // How the console of a running daemon behaves from now on.
  void set_mode(const std::string& mode) const { std::ofstream(log("mode")) << mode; }

  MpsRecord record() const {
    const std::optional<MpsRecord> read = MpsDirectory(gpu_folder()).read_record();
    if (!read) ADD_FAILURE() << "no record in " << gpu_folder();
    return read.value_or(MpsRecord{});
  }

  TempFolder folder_;
};

TEST_F(MpsDaemonTest, StartRunsDaemonAndServer) {
  const auto daemon = make();
  const auto started = daemon->start(kGpu);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_EQ(daemon->running(), std::vector<std::string>{kGpu});
  EXPECT_EQ(daemon->control_socket(kGpu), gpu_folder() + "/pipe/control");
  EXPECT_TRUE(std::filesystem::exists(daemon->control_socket(kGpu)));
  EXPECT_TRUE(daemon->probe(kGpu).has_value());

  EXPECT_EQ(read_lines(log("arguments")), std::vector<std::string>{"-d -multiuser-server"});
  EXPECT_EQ(read_lines(log("directory")), std::vector<std::string>{"/"});
  const auto environment = read_lines(log("environment"));
  for (const std::string& want :
       {"CUDA_MPS_PIPE_DIRECTORY=" + gpu_folder() + "/pipe",
        "CUDA_MPS_LOG_DIRECTORY=" + gpu_folder() + "/log",
        std::string("CUDA_VISIBLE_DEVICES=") + kGpu, std::string("FAKE_MODE=works")}) {
    EXPECT_EQ(std::ranges::count(environment, want), 1) << want;
  }
  for (const char* part :
       {"", "/mps", "/mps/1a2b3c4d", "/mps/1a2b3c4d/pipe", "/mps/1a2b3c4d/log"}) {
    struct stat status {};
    ASSERT_EQ(::stat((run_dir() + part).c_str(), &status), 0) << part;
    EXPECT_EQ(status.st_mode & 07777, 0755U) << part;
  }
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

// A daemon outlives us: it may hold no socket, lock or variable of ours and is in another session.
TEST_F(MpsDaemonTest, DaemonInheritsNothing) {
  ::setenv("COTENANT_TEST_SECRET", "s3cret", 1);
  const std::string ours = folder_.path() + "/ours";
  const int leaky = ::open(ours.c_str(), O_RDWR | O_CREAT, 0600);  // not close-on-exec
  ASSERT_GE(leaky, 0);
  const mode_t old_umask = ::umask(0077);
  const auto daemon = make();
  ASSERT_TRUE(daemon->start(kGpu).has_value());
  ::umask(old_umask);
  ::close(leaky);
  ::unsetenv("COTENANT_TEST_SECRET");

  EXPECT_EQ(read_text(log("environment")).find("COTENANT_TEST_SECRET"), std::string::npos);
  EXPECT_EQ(read_text(log("descriptors")).find(ours), std::string::npos);
  EXPECT_NE(::getsid(record().daemon.pid), ::getsid(0));
  struct stat status {};
  ASSERT_EQ(::stat((gpu_folder() + "/pipe").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755U) << "whatever our umask";
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

TEST_F(MpsDaemonTest, StopEndsBothAndKeepsTheLogs) {
  const auto daemon = make();
  ASSERT_TRUE(daemon->start(kGpu).has_value());
  const MpsRecord before = record();
  ASSERT_TRUE(before.server.has_value());
  const auto stopped = daemon->stop(kGpu);
  ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
  EXPECT_FALSE(is_alive(before.daemon));
  EXPECT_FALSE(is_alive(*before.server));
  EXPECT_TRUE(daemon->running().empty());
  EXPECT_FALSE(std::filesystem::exists(gpu_folder() + "/pipe"));
  const auto commands = read_lines(log("commands"));
  ASSERT_GE(commands.size(), 2U);
  EXPECT_EQ(commands[commands.size() - 2], fmt::format("shutdown_server {} -f", before.server_pid));
  EXPECT_EQ(commands.back(), "quit");
  EXPECT_TRUE(daemon->stop(kGpu).has_value()) << "no daemon is success";
  const auto probed = daemon->probe(kGpu);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(daemon->start(kGpu).has_value()) << "and it can be started again";
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

TEST_F(MpsDaemonTest, StopForcesADaemonThatDoesNotGo) {
  for (const char* mode : {"ignores-quit", "ignores-term"}) {
    SCOPED_TRACE(mode);
    const auto daemon = make(mode);
    ASSERT_TRUE(daemon->start(kGpu).has_value());
    const MpsRecord before = record();
    const auto stopped = daemon->stop(kGpu);
    ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
    EXPECT_FALSE(is_alive(before.daemon));
    EXPECT_FALSE(is_alive(before.server.value_or(ProcessIdentity{})));
  }
}

TEST_F(MpsDaemonTest, StopForcesADaemonThatHangs) {
  ASSERT_TRUE(make()->start(kGpu).has_value());
  const MpsRecord before = record();
  set_mode("console-hangs");
  const auto stopped = make("console-hangs")->stop(kGpu);
  ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
  EXPECT_FALSE(is_alive(before.daemon));
  EXPECT_FALSE(is_alive(before.server.value_or(ProcessIdentity{})));
}

TEST_F(MpsDaemonTest, RestartedAgentAdoptsTheDaemon) {
  ASSERT_TRUE(make()->start(kGpu).has_value());
  const MpsRecord before = record();
  const auto next = make();
  EXPECT_EQ(next->running(), std::vector<std::string>{kGpu});
  EXPECT_TRUE(next->probe(kGpu).has_value()) << "without a start";
  ASSERT_TRUE(next->start(kGpu).has_value());
  ASSERT_TRUE(next->start(kGpu).has_value());
  EXPECT_EQ(record().daemon, before.daemon);
  EXPECT_EQ(record().server_pid, before.server_pid);
  EXPECT_TRUE(next->stop(kGpu).has_value());
  EXPECT_FALSE(is_alive(before.daemon));
}

// The record names a live process that is not the daemon: a pid that was used again.
TEST_F(MpsDaemonTest, AStrangerWithTheRecordedPidIsNotAdoptedNorSignalled) {
  const struct {
    const char* name;
    void (*change)(ProcessIdentity& identity);
  } cases[] = {
      {"start time", [](ProcessIdentity& identity) { ++identity.start_time_ticks; }},
      {"boot", [](ProcessIdentity& identity) { identity.boot_id = "another"; }},
      {"command line", [](ProcessIdentity& identity) { identity.command += " -x"; }},
  };
  // We are the stranger: a signal would end the test.
  const auto self = identify_process(::getpid());
  ASSERT_TRUE(self.has_value());
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    const MpsDirectory directory(gpu_folder());
    ASSERT_TRUE(directory.prepare().has_value());
    MpsRecord forged{kGpu, *self, self->pid, *self};
    test.change(forged.daemon);
    test.change(*forged.server);
    ASSERT_TRUE(directory.write_record(forged).has_value());
    std::ofstream(gpu_folder() + "/pipe/nvidia-cuda-mps-control.pid") << self->pid << "\n";
    std::ofstream(gpu_folder() + "/pipe/stale") << "x";

    const auto daemon = make();
    EXPECT_TRUE(daemon->running().empty());
    EXPECT_FALSE(daemon->probe(kGpu).has_value());
    const auto started = daemon->start(kGpu);
    ASSERT_TRUE(started.has_value()) << started.error().message;
    EXPECT_NE(record().daemon.pid, self->pid);
    EXPECT_FALSE(std::filesystem::exists(gpu_folder() + "/pipe/stale"));
    EXPECT_TRUE(daemon->stop(kGpu).has_value());
  }
}

TEST_F(MpsDaemonTest, KilledDaemonIsReplacedAndItsServerEnded) {
  const auto daemon = make();
  ASSERT_TRUE(daemon->start(kGpu).has_value());
  const MpsRecord before = record();
  ASSERT_TRUE(before.server.has_value());
  ASSERT_EQ(::kill(before.daemon.pid, SIGKILL), 0);
  ASSERT_TRUE(wait_until_gone(before.daemon, milliseconds(5000)));
  EXPECT_TRUE(is_alive(*before.server));
  EXPECT_EQ(daemon->running(), std::vector<std::string>{kGpu}) << "this is no plain GPU yet";
  const auto probed = daemon->probe(kGpu);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  const auto started = daemon->start(kGpu);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_FALSE(is_alive(*before.server));
  EXPECT_NE(record().daemon.pid, before.daemon.pid);
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

// start() was interrupted before it wrote its record.
TEST_F(MpsDaemonTest, DaemonWithoutARecordIsEndedBeforeANewStart) {
  for (const bool restart : {true, false}) {
    SCOPED_TRACE(restart ? "start" : "stop");
    ASSERT_TRUE(make()->start(kGpu).has_value());
    const MpsRecord before = record();
    MpsDirectory(gpu_folder()).remove_record();
    const auto daemon = make();
    ASSERT_TRUE((restart ? daemon->start(kGpu) : daemon->stop(kGpu)).has_value());
    EXPECT_FALSE(is_alive(before.daemon));
    EXPECT_EQ(daemon->running().size(), restart ? 1U : 0U);
    ASSERT_TRUE(daemon->stop(kGpu).has_value());
  }
}

TEST_F(MpsDaemonTest, SlowServerIsWaitedFor) {
  const auto daemon = make("slow");
  const auto started = daemon->start(kGpu);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  EXPECT_EQ(read_lines(log("asked")).size(), 4U);
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

TEST_F(MpsDaemonTest, FailedStartSaysWhyAndLeavesNothing) {
  const struct {
    const char* mode;
    ErrorCode want;
    std::vector<std::string> want_texts;
  } cases[] = {
      {"launch-fails", ErrorCode::kIo, {"exit code 1", "already running"}},
      {"launch-hangs", ErrorCode::kIo, {"did not go into the background within 300 ms"}},
      {"dies-at-once", ErrorCode::kIo, {"ended as soon as it was started", "no GPU for me"}},
      {"console-hangs", ErrorCode::kTimeout, {"within 300 ms", "it hangs"}},
      {"never-active", ErrorCode::kUnavailable, {"not ACTIVE within 300 ms", "INITIALIZING"}},
      {"no-server", ErrorCode::kUnavailable, {"not ACTIVE within 300 ms", "absent"}},
      {"fault", ErrorCode::kUnavailable, {"FAULT"}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.mode);
    const auto daemon = make(test.mode);
    const auto started = daemon->start(kGpu);
    ASSERT_FALSE(started.has_value());
    EXPECT_EQ(started.error().code, test.want) << started.error().message;
    EXPECT_CONTAINS(started.error().message, kGpu);
    for (const std::string& text : test.want_texts) EXPECT_CONTAINS(started.error().message, text);
    EXPECT_TRUE(daemon->running().empty());
    EXPECT_FALSE(std::filesystem::exists(gpu_folder() + "/pipe"));
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t pid = std::atoi(entry.path().filename().c_str());
      if (start_environment(pid, "CUDA_MPS_PIPE_DIRECTORY") != gpu_folder() + "/pipe") continue;
      const auto left = identify_process(pid);
      EXPECT_FALSE(left.has_value()) << left->command;
    }
  }
}

// An adopted daemon may have tenants: a failing start leaves it as it is.
TEST_F(MpsDaemonTest, FailedAdoptionLeavesTheDaemon) {
  ASSERT_TRUE(make()->start(kGpu).has_value());
  const MpsRecord before = record();
  set_mode("fault");
  EXPECT_FALSE(make()->start(kGpu).has_value());
  EXPECT_TRUE(is_alive(before.daemon));
  set_mode("works");
  const auto daemon = make();
  EXPECT_TRUE(daemon->start(kGpu).has_value());
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

TEST_F(MpsDaemonTest, ProbeNamesWhatIsWrong) {
  const struct {
    const char* mode;
    ErrorCode want;
    const char* want_text;
  } cases[] = {
      {"fault", ErrorCode::kUnavailable, "state FAULT"},
      {"never-active", ErrorCode::kUnavailable, "state INITIALIZING"},
      {"console-refuses", ErrorCode::kUnavailable, "exit code 3): \"go away\""},
      {"console-hangs", ErrorCode::kTimeout, "get_default_active_thread_percentage within"},
      {"nonsense", ErrorCode::kUnavailable, "\"a lot\""},
  };
  ASSERT_TRUE(make()->start(kGpu).has_value());
  for (const auto& test : cases) {
    SCOPED_TRACE(test.mode);
    set_mode(test.mode);
    const auto probed = make(test.mode)->probe(kGpu);
    ASSERT_FALSE(probed.has_value());
    EXPECT_EQ(probed.error().code, test.want) << probed.error().message;
    EXPECT_CONTAINS(probed.error().message, test.want_text);
  }
  set_mode("works");
  EXPECT_TRUE(make()->probe(kGpu).has_value());

  // The server that was known is gone.
  const MpsRecord before = record();
  ASSERT_EQ(::kill(before.server_pid, SIGKILL), 0);
  std::filesystem::remove(gpu_folder() + "/pipe/server");
  const auto probed = make()->probe(kGpu);
  ASSERT_FALSE(probed.has_value());
  EXPECT_EQ(probed.error().code, ErrorCode::kUnavailable);
  EXPECT_CONTAINS(probed.error().message, "Server not found");
  const auto daemon = make();
  ASSERT_TRUE(daemon->start(kGpu).has_value()) << "start() sees to a new one";
  EXPECT_NE(record().server_pid, before.server_pid);
  EXPECT_EQ(record().daemon, before.daemon);
  EXPECT_TRUE(daemon->probe(kGpu).has_value());
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

// A person at the console makes our sessions fail now and then (sglang-omni PR 2101: 202 of 800 with
// four readers); that is no fault of the daemon.
TEST_F(MpsDaemonTest, SurvivesOtherSessionsAtTheConsole) {
  const auto daemon = make("collides");
  const auto started = daemon->start(kGpu);
  ASSERT_TRUE(started.has_value()) << started.error().message;
  const auto probed = daemon->probe(kGpu);
  EXPECT_TRUE(probed.has_value()) << probed.error().message;
  EXPECT_GT(read_lines(log("collisions")).size(), 6U);
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
}

TEST_F(MpsDaemonTest, GpusThatBeginAlikeGetDifferentFoldersThatStay) {
  std::string twin_socket;
  {
    const auto daemon = make();
    ASSERT_TRUE(daemon->start(kGpu).has_value());
    ASSERT_TRUE(daemon->start(kTwin).has_value());
    EXPECT_EQ(daemon->running(), (std::vector<std::string>{kGpu, kTwin}));
    twin_socket = daemon->control_socket(kTwin);
    EXPECT_NE(twin_socket, daemon->control_socket(kGpu));
    ASSERT_TRUE(daemon->stop(kGpu).has_value());
  }
  // The first digits' folder is free now, but the twin's daemon lives elsewhere.
  const auto next = make();
  EXPECT_EQ(next->control_socket(kTwin), twin_socket);
  EXPECT_TRUE(next->probe(kTwin).has_value());
  EXPECT_TRUE(next->stop(kTwin).has_value());
}

// More than one thread a GPU: the console commands of one daemon never overlap.
TEST_F(MpsDaemonTest, CallsFromSeveralThreads) {
  const auto daemon = make();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const std::string gpu = i % 2 == 0 ? kGpu : kOther;
      EXPECT_TRUE(daemon->start(gpu).has_value());
      EXPECT_TRUE(daemon->probe(gpu).has_value());
      daemon->running();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto commands = read_lines(log("commands"));
  EXPECT_EQ(std::ranges::count(commands, "start_server -uid 0"), 1);
  EXPECT_EQ(daemon->running(), (std::vector<std::string>{kGpu, kOther}));
  EXPECT_TRUE(daemon->stop(kGpu).has_value());
  EXPECT_EQ(daemon->running(), std::vector<std::string>{kOther});
  EXPECT_TRUE(daemon->stop(kOther).has_value());
}

TEST_F(MpsDaemonTest, BadInputIsRefusedWithTheRemedy) {
  const std::string closed = folder_.path() + "/closed";
  std::filesystem::create_directory(closed);
  ASSERT_EQ(::chmod(closed.c_str(), 0700), 0);
  const std::string file = folder_.path() + "/file";
  std::ofstream(file) << "x";
  const struct {
    const char* name;
    std::string run_dir;
    std::string control_binary;
    std::string gpu_uuid;
    std::vector<std::string> want_texts;
  } cases[] = {
      {"uuid", run_dir(), control(), "GPU-../../etc", {"GPU-../../etc", "not a GPU's UUID"}},
      {"relative", "run", control(), kGpu, {"not absolute", "--run-dir"}},
      {"long", run_dir() + std::string(60, 'x'), control(), kGpu, {"75", "shorter --run-dir"}},
      {"private",
       closed + "/run",
       control(),
       kGpu,
       {closed + " (mode 0700)", "chmod o+x " + closed}},
      {"file in the way", file, control(), kGpu, {file, "Not a directory"}},
      {"no program", run_dir(), "/no/such/control", kGpu, {"/no/such/control", "--mps-control"}},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    MpsDaemonOptions options;
    options.run_dir = test.run_dir;
    options.control_binary = test.control_binary;
    const auto started = MpsDaemon(options).start(test.gpu_uuid);
    ASSERT_FALSE(started.has_value());
    EXPECT_EQ(started.error().code, ErrorCode::kIo);
    for (const std::string& text : test.want_texts) EXPECT_CONTAINS(started.error().message, text);
  }
}

TEST(MpsConsoleTest, ServerList) {
  const struct {
    const char* answer;
    std::optional<std::vector<pid_t>> want;
  } cases[] = {
      {"", std::vector<pid_t>{}},
      {" \n", std::vector<pid_t>{}},
      {"28941\n", std::vector<pid_t>{28941}},
      {"7000  8000", std::vector<pid_t>{7000, 8000}},
      {"1\n2\n3", std::vector<pid_t>{1, 2, 3}},
      {"none", std::nullopt},
      {"12x", std::nullopt},
      {"-4", std::nullopt},
      {"0", std::nullopt},
      {"99999999999", std::nullopt},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.answer);
    const auto pids = parse_server_list(test.answer);
    ASSERT_EQ(pids.has_value(), test.want.has_value());
    EXPECT_EQ(pids.value_or(std::vector<pid_t>{}), test.want.value_or(std::vector<pid_t>{}));
  }
}

TEST(MpsConsoleTest, ThreadPercentage) {
  const struct {
    const char* answer;
    std::optional<double> want;
  } cases[] = {
      {"25.0\n", 25.0},      {"100.0", 100.0},        {"0", 0.0},
      {"", std::nullopt},    {"100.1", std::nullopt}, {"-1", std::nullopt},
      {"nan", std::nullopt}, {"50 %", std::nullopt},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.answer);
    const auto percent = parse_thread_percentage(test.answer);
    ASSERT_EQ(percent.has_value(), test.want.has_value());
    EXPECT_EQ(percent.value_or(-1), test.want.value_or(-1));
  }
}

TEST(MpsRecordTest, RoundTripAndDamage) {
  MpsRecord record{
      kGpu, {17, 4711, "boot", "/bin/sh x -d"}, 18, ProcessIdentity{18, 4712, "boot", ""}};
  for (const bool with_server : {true, false}) {
    if (!with_server) {
      record.server_pid = 0;
      record.server.reset();
    }
    const std::string text = format_mps_record(record);
    const auto read = parse_mps_record(text);
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(read->gpu_uuid, record.gpu_uuid);
    EXPECT_EQ(read->daemon, record.daemon);
    EXPECT_EQ(read->server_pid, record.server_pid);
    EXPECT_EQ(read->server, record.server);
    for (std::size_t cut = 0; cut + 1 < text.size(); ++cut) {
      const std::string_view part = std::string_view(text).substr(0, cut);
      if (part.ends_with("end")) continue;
      EXPECT_FALSE(parse_mps_record(part).has_value()) << part;
    }
    EXPECT_FALSE(parse_mps_record("x" + text).has_value());
  }
}

}  // namespace
}  // namespace cotenant::adapters
