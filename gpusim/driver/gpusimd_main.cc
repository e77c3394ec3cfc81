// gpusimd: the simulated kernel driver.
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "common/driver_versions.h"
#include "common/gaps.h"
#include "common/text.h"
#include "common/unix_socket.h"
#include "driver/accounting.h"
#include "driver/daemon.h"
#include "driver/device_table.h"
#include "driver/fleet_file.h"
#include "driver/run_dir.h"

namespace gpusim {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kBacklog = 128;

constexpr char kUsage[] =
    "usage: gpusimd --dir DIR (--gpus SPEC | --file FILE) [OPTIONS]\n"
    "\n"
    "Simulates the NVIDIA kernel driver for the GPUs given, in the foreground, until SIGTERM.\n"
    "DIR/gpusimd.pid is there while it accepts connections.\n"
    "\n"
    "  --dir DIR         where socket, device files and CDI spec go; programs find it by GPUSIM_DIR\n"
    "  --gpus SPEC       NxMODEL[,NxMODEL...], for example 2xL4 or 1xH100,4xA10G; at most 64 GPUs.\n"
    "                    2xL4-6Q: vGPU slices of 6 GiB; 1xA100-40:3g.20gb+1g.5gb: MIG devices\n"
    "  --file FILE       a fleet as JSON or YAML (see README)\n"
    "  --driver VERSION  470, 535, 550, 580, 590, 595, 615, or a full version; default: that of\n"
    "                    GPUSIM_DRIVER, else 580\n"
    "  --seed N          UUIDs derive from N; default: from /etc/machine-id and DIR\n"
    "  --gap NAME=on|off a known gap of the real driver: crafted-limit, plain-process, per-process\n"
    "  --limit-excludes-context\n"
    "                    a context's own memory does not count against the MPS client's limit\n"
    "  --foreground      the default, accepted for clarity\n"
    "  --version, --help\n";

struct Options {
  std::string dir;
  std::string gpus;
  std::string file;
  std::string driver;
  std::optional<uint64_t> seed;
  uint32_t gaps = 0;     // those that --gap names
  uint32_t gaps_on = 0;  // and which of them are on
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
    constexpr std::string_view kWithValue[] = {"--dir",    "--gpus", "--file",
                                               "--driver", "--seed", "--gap"};
    if (std::find(std::begin(kWithValue), std::end(kWithValue), name) == std::end(kWithValue)) {
      return usage_error(fmt::format("unknown option '{}'; try --help", name));
    }
    if (!inline_value && i + 1 >= argc) return usage_error(fmt::format("{} needs a value", name));
    const std::string value = inline_value ? *inline_value : argv[++i];
    if (name == "--dir") options->dir = value;
    if (name == "--gpus") options->gpus = value;
    if (name == "--file") options->file = value;
    if (name == "--driver") options->driver = value;
    if (name == "--gap" && !parse_gap(value, &options->gaps, &options->gaps_on)) {
      return usage_error(
          fmt::format("--gap '{}' is not NAME=on|off; names: {}", value, gap_names()));
    }
    if (name == "--seed") {
      uint64_t seed = 0;
      if (!parse_number(value, &seed)) {
        return usage_error(fmt::format("--seed '{}' is not a whole number", value));
      }
      options->seed = seed;
    }
  }
  if (options->dir.empty()) return usage_error("--dir is missing; try --help");
  if (options->gpus.empty() && options->file.empty()) {
    return usage_error("--gpus is missing; try --help");
  }
  if (!options->gpus.empty() && !options->file.empty()) {
    return usage_error("--gpus and --file exclude each other");
  }
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

// The GPUs, and what of the fleet file the command line does not override.
std::optional<std::string> find_fleet(Options* options, Fleet* fleet) {
  if (options->file.empty()) {
    auto gpus = parse_gpu_spec(options->gpus);
    if (const auto* error = std::get_if<std::string>(&gpus)) return *error;
    fleet->gpus = std::get<std::vector<GpuSpec>>(std::move(gpus));
  } else {
    auto read = read_fleet_file(options->file);
    if (const auto* error = std::get_if<std::string>(&read)) return *error;
    *fleet = std::get<Fleet>(std::move(read));
  }
  if (!options->seed) options->seed = fleet->seed;
  if (options->driver.empty()) options->driver = fleet->driver;
  return std::nullopt;
}

std::string known_drivers() {
  size_t count = 0;
  const DriverVersion* versions = driver_versions(&count);
  std::string names;
  for (size_t i = 0; i < count; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", versions[i].major);
  }
  return names;
}

int run(int argc, char** argv) {
  Options options;
  if (const auto exit_code = parse_arguments(argc, argv, &options)) return *exit_code;
  Fleet fleet;
  if (const auto error = find_fleet(&options, &fleet)) return usage_error(*error);
  DriverInfo driver;
  // For who cannot add an option, because another program starts gpusimd.
  const char* preset = getenv("GPUSIM_DRIVER");
  if (options.driver.empty() && preset != nullptr) options.driver = preset;
  if (options.driver.empty()) options.driver = "580";
  if (!find_driver_version(options.driver, &driver)) {
    return usage_error(
        fmt::format("--driver '{}' is not a known version; known: {}, or a full version "
                    "such as 580.95.05",
                    options.driver, known_drivers()));
  }
  driver.behaviours = (driver.behaviours & ~options.gaps) | options.gaps_on;
  options.accounting.behaviours = driver.behaviours;
  options.accounting.has_memory_cgroups = driver_major(driver.driver_version) >= 615;
  options.accounting.confines_sm_faults = driver_major(driver.driver_version) >= 610;

  const int stop_fd = stop_signals();
  if (stop_fd < 0) return failure(fmt::format("signalfd: {}", strerror(errno)));
  RunDir run_dir;
  if (const auto error = RunDir::open(options.dir, &run_dir)) return failure(*error);
  const uint64_t seed = options.seed ? *options.seed : default_seed(machine_id(), run_dir.path());
  Accounting accounting(make_devices(fleet.gpus, seed, driver.cuda_version), options.accounting);

  std::error_code code;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return failure(fmt::format("/proc/self/exe: {}", code.message()));
  const auto publish = [&] {
    return run_dir.publish_devices(accounting.devices(), binary.parent_path().string());
  };
  if (const auto error = publish()) return failure(*error);
  // The socket is for every user, as /dev/nvidia* are.
  const int listen_fd =
      listen_seqpacket(run_dir.socket_folder().c_str(), kSocketName, 0666, kBacklog);
  if (listen_fd < 0) {
    return failure(fmt::format("{}/{}: {}", run_dir.socket_folder(), kSocketName, strerror(errno)));
  }
  Daemon::Config config;
  config.driver = driver;
  config.new_uuid = [seed](uint32_t device, uint32_t generation) {
    return device_uuid(seed, device, generation);
  };
  config.devices_changed = [&] {
    if (const auto error = publish()) fmt::print(stderr, "gpusimd: {}\n", *error);
  };
  config.kernel_log = [&](const std::string& line) { run_dir.append_kernel_log(line); };
  Daemon daemon(&accounting, std::move(config), listen_fd, stop_fd);
  if (const auto error = run_dir.publish_ready()) return failure(*error);
  fmt::print("gpusimd: serving {} simulated GPUs in {}, pid {}\n", fleet.gpus.size(),
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
