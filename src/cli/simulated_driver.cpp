#include "cli/simulated_driver.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "cli/pid_file.h"

namespace cotenant::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kStartLimit{10};

std::string pid_path(const Installation& installation) {
  return installation.run_dir + "/gpusimd.pid";
}
std::string spec_path(const Installation& installation) {
  return installation.run_dir + "/gpusimd.spec";
}
std::string log_path(const Installation& installation) {
  return installation.run_dir + "/gpusimd.log";
}

// gpusim's files lie in gpusim/ beside our own binary.
std::string gpusim_file(const std::string& name) {
  std::error_code error;
  return (fs::read_symlink("/proc/self/exe", error).parent_path() / "gpusim" / name).string();
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// In a session of its own, without our descriptors, its words in the log file.
base::Result<pid_t> spawn_gpusimd(const Installation& installation, const std::string& dir) {
  const std::string binary = gpusim_file("gpusimd");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log_path(installation).c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // None of our blocked signals, nor what we ignore.
  sigset_t none;
  sigset_t ignored;
  sigemptyset(&none);
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));

  std::string program = binary;
  std::string dir_argument = "--dir=" + dir;
  std::string gpus_argument = "--gpus=" + installation.simulate_gpus;
  char* arguments[] = {program.data(), dir_argument.data(), gpus_argument.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, binary.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return base::fail(base::ErrorCode::kIo,
                    fmt::format("{}: cannot be started: {}; the simulated driver is built with "
                                "cotenant and lies in gpusim/ beside it",
                                binary, std::strerror(error)));
}

// Until gpusimd accepts connections: its own pid file is there.
base::Status wait_until_ready(const Installation& installation, const std::string& dir, pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + kStartLimit;
  std::error_code ignored;
  while (!fs::exists(dir + "/gpusimd.pid", ignored)) {
    siginfo_t ended{};
    const bool asked =
        ::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
    if (asked && ended.si_pid == pid) {
      const std::string words = first_line(log_path(installation));
      return base::fail(base::ErrorCode::kInvalidParameter,
                        fmt::format("--simulate-gpus {}: {}", installation.simulate_gpus, words));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return base::fail(base::ErrorCode::kTimeout,
                        fmt::format("gpusimd is not ready after {} s; its log is {}",
                                    kStartLimit.count(), log_path(installation)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return {};
}

base::Status write_spec(const Installation& installation) {
  std::ofstream file(spec_path(installation), std::ios::trunc);
  file << installation.simulate_gpus << "\n";
  file.close();
  if (file) return {};
  return base::fail(base::ErrorCode::kIo, spec_path(installation) +
                                              ": cannot be written; is the disk "
                                              "full? Choose another folder with --run-dir");
}

base::Result<DriverStart> start_gpusimd(const Installation& installation, const std::string& dir) {
  if (read_pid_file(pid_path(installation))) {
    const std::string running = first_line(spec_path(installation));
    if (running == installation.simulate_gpus) return DriverStart::kFound;
    return base::fail(
        base::ErrorCode::kConflict,
        fmt::format("--simulate-gpus {}: the simulated driver runs with {}; keep that, or "
                    "`cotenant down` first",
                    installation.simulate_gpus, running));
  }
  std::error_code ignored;
  fs::create_directories(dir, ignored);
  fs::remove(dir + "/gpusimd.pid", ignored);
  auto pid = spawn_gpusimd(installation, dir);
  if (!pid) return base::fail(pid.error());
  // Recorded before it is ready, so that whatever happens next, `down` finds it.
  auto status = write_pid_file(pid_path(installation), *pid);
  if (status) status = wait_until_ready(installation, dir, *pid);
  if (status) status = write_spec(installation);
  if (!status) {
    ::kill(*pid, SIGKILL);  // our own child, not yet waited for: the pid is surely its
    ::waitpid(*pid, nullptr, 0);
    return base::fail(status.error());
  }
  base::log::info("simulated GPUs: {}, gpusimd pid {}", installation.simulate_gpus, *pid);
  return DriverStart::kStarted;
}

}  // namespace

std::string simulated_driver_dir(const Installation& installation) {
  return installation.run_dir + "/gpusim";
}

base::Result<DriverStart> use_simulated_driver(Installation& installation) {
  const std::string dir = simulated_driver_dir(installation);
  auto start = start_gpusimd(installation, dir);
  if (!start) return start;
  ::setenv("GPUSIM_DIR", dir.c_str(), 1);
  installation.nvml_library = gpusim_file("libnvidia-ml.so.1");
  installation.mps_control = gpusim_file("nvidia-cuda-mps-control");
  installation.cdi_dir = dir + "/cdi";
  return start;
}

base::Status end_simulated_driver(const Installation& installation) {
  const auto process = read_pid_file(pid_path(installation));
  return process ? end_recorded_process(*process, "gpusimd") : base::Status{};
}

}  // namespace cotenant::cli
