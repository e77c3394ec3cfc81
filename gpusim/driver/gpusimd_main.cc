// gpusimd: the simulated kernel driver.
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "common/text.h"
#include "common/unix_socket.h"
#include "driver/accounting.h"
#include "driver/daemon.h"
#include "driver/device_table.h"
#include "driver/run_dir.h"

namespace gpusim {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kBacklog = 128;

constexpr char kUsage[] =
    "usage: gpusimd --dir DIR --gpus NxMODEL[,NxMODEL...] [--seed N] [--limit-excludes-context]\n"
    "\n"
    "Simulates the NVIDIA kernel driver for the GPUs given, in the foreground, until SIGTERM.\n"
    "DIR/gpusimd.pid is there while it accepts connections.\n"
    "\n"
    "  --dir DIR                 where socket, device files and CDI spec go; programs find it by\n"
    "                            GPUSIM_DIR\n"
    "  --gpus SPEC               for example 2xL4 or 1xH100,4xA10G; at most 64 GPUs\n"
    "  --seed N                  UUIDs derive from N; default: from /etc/machine-id and DIR\n"
    "  --limit-excludes-context  a context's own memory does not count against the MPS client's\n"
    "                            pinned-memory limit\n"
    "  --foreground              the default, accepted for clarity\n"
    "  --version, --help\n";

struct Options {
  std::string dir;
  std::string gpus;
  std::optional<uint64_t> seed;
  AccountingOptions accounting;
};

int usage_error(const std::string& text) {
  fmt::print(stderr, "gpusimd: {}\n", text);
  return kExitUsage;
}

int failure(const std::string& text) {
  fmt::print(stderr, "gpusimd: {}\n", text);
  return kExitFailure;
}

// An exit code when the program ends here.
std::optional<int> parse_arguments(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    std::optional<std::string> inline_value;
    const size_t equals = name.find('=');
    if (name.starts_with("--") && equals != std::string::npos) {
      inline_value = name.substr(equals + 1);
      name.resize(equals);
    }
    if (name == "--help") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (name == "--version") {
      fmt::print("gpusimd {}\n", kDriverVersion);
      return 0;
    }
    if (name == "--foreground") continue;
    if (name == "--limit-excludes-context") {
      options->accounting.limit_includes_context = false;
      continue;
    }
    if (name != "--dir" && name != "--gpus" && name != "--seed") {
      return usage_error(fmt::format("unknown option '{}'; try --help", name));
    }
    if (!inline_value && i + 1 >= argc) return usage_error(fmt::format("{} needs a value", name));
    const std::string value = inline_value ? *inline_value : argv[++i];
    if (name == "--dir") options->dir = value;
    if (name == "--gpus") options->gpus = value;
    if (name == "--seed") {
      uint64_t seed = 0;
      if (!parse_number(value, &seed)) {
        return usage_error(fmt::format("--seed '{}' is not a whole number", value));
      }
      options->seed = seed;
    }
  }
  if (options->dir.empty()) return usage_error("--dir is missing; try --help");
  if (options->gpus.empty()) return usage_error("--gpus is missing; try --help");
  return std::nullopt;
}

std::string machine_id() {
  std::ifstream file("/etc/machine-id");
  std::string id;
  std::getline(file, id);
  return id;
}

int stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return -1;
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int run(int argc, char** argv) {
  Options options;
  if (const auto exit_code = parse_arguments(argc, argv, &options)) return *exit_code;
  const auto models = parse_gpu_spec(options.gpus);
  if (const auto* error = std::get_if<std::string>(&models)) return usage_error(*error);

  const int stop_fd = stop_signals();
  if (stop_fd < 0) return failure(fmt::format("signalfd: {}", strerror(errno)));
  RunDir run_dir;
  if (const auto error = RunDir::open(options.dir, &run_dir)) return failure(*error);
  const uint64_t seed = options.seed ? *options.seed : default_seed(machine_id(), run_dir.path());
  Accounting accounting(make_devices(std::get<std::vector<const GpuModel*>>(models), seed),
                        options.accounting);

  std::error_code code;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return failure(fmt::format("/proc/self/exe: {}", code.message()));
  if (const auto error =
          run_dir.publish_devices(accounting.devices(), binary.parent_path().string())) {
    return failure(*error);
  }
  // The socket is for every user, as /dev/nvidia* are.
  const int listen_fd =
      listen_seqpacket(run_dir.socket_folder().c_str(), kSocketName, 0666, kBacklog);
  if (listen_fd < 0) {
    return failure(fmt::format("{}/{}: {}", run_dir.socket_folder(), kSocketName, strerror(errno)));
  }
  Daemon daemon(&accounting, listen_fd, stop_fd);
  if (const auto error = run_dir.publish_ready()) return failure(*error);
  fmt::print("gpusimd: serving {} simulated GPUs in {}, pid {}\n", accounting.devices().size(),
             run_dir.path(), getpid());
  fflush(stdout);
  const bool ended_well = daemon.run();
  run_dir.clear();
  close(listen_fd);
  close(stop_fd);
  return ended_well ? 0 : failure(fmt::format("epoll: {}", strerror(errno)));
}

}  // namespace
}  // namespace gpusim

int main(int argc, char** argv) {
  try {
    return gpusim::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpusimd: {}\n", error.what());
    return 1;
  }
}
