// nvidia-cuda-mps-control: console, daemon (-d, -f) and, under the name nvidia-cuda-mps-server, the
// server that the daemon forks.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "mps/console.h"
#include "mps/control_daemon.h"
#include "mps/paths.h"
#include "mps/server.h"

namespace gpusim::mps {
namespace {

void detach_stdio() {
  const int null_fd = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2 && null_fd >= 0; ++fd) dup2(null_fd, fd);
  if (null_fd > 2) close(null_fd);
}

// Descriptors that the caller left open would keep its pipes and locks alive as long as the daemon or
// its server lives.
void close_inherited(int keep_fd) {
  const long open_max = sysconf(_SC_OPEN_MAX);
  for (int fd = 3; fd < open_max && fd < 4096; ++fd) {
    if (fd != keep_fd) close(fd);
  }
}

int run_foreground(DaemonOptions options) {
  close_inherited(-1);
  ControlDaemon daemon(std::move(options));
  if (const auto error = daemon.open()) {
    fmt::print(stderr, "{}\n", *error);
    return 1;
  }
  return daemon.run();
}

// Returns in the parent only, once the daemon accepts connections: 0; else 1 and why.
int run_background(DaemonOptions options) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return 1;
  const pid_t pid = fork();
  if (pid < 0) {
    fmt::print(stderr, "fork: {}\n", strerror(errno));
    return 1;
  }
  if (pid == 0) {
    setsid();
    close_inherited(ready[1]);
    detach_stdio();
    ControlDaemon daemon(std::move(options));
    const auto error = daemon.open();
    const std::string report = error ? *error : std::string("\n");
    const ssize_t written = write(ready[1], report.data(), report.size());
    close(ready[1]);
    _exit(error || written < 0 ? 1 : daemon.run());
  }
  close(ready[1]);
  std::string report;
  char part[512];
  ssize_t size;
  while ((size = read(ready[0], part, sizeof part)) > 0 || (size < 0 && errno == EINTR)) {
    if (size > 0) report.append(part, static_cast<size_t>(size));
  }
  if (report == "\n") return 0;
  waitpid(pid, nullptr, 0);
  fmt::print(stderr, "{}\n", report.empty() ? "The daemon ended before it was ready" : report);
  return 1;
}

int usage(FILE* out) {
  fmt::print(out,
             "usage: nvidia-cuda-mps-control [-d | -f] [-multiuser-server | -M] [-S] [-v]\n"
             "       nvidia-cuda-mps-control [-d | -f] -p 3 [-m] [-a FILE]\n"
             "       nvidia-cuda-mps-control MODULE VERB [ARGUMENTS] [--key=value]   (of -p 3)\n"
             "  -d  start the daemon in the background    -f  in the foreground\n"
             "  -multiuser-server, -M, -m, --multiuser  one server for all users\n"
             "  -S, --static-partitioning  SM partitions instead of percentages (CUDA 13.1)\n"
             "  -p, --protocol 2|3   also CUDA_MPS_PROTOCOL_VERSION, which wins; 3: driver 615\n"
             "  -a, --apply FILE     of -p 3: servers and namespaces from a TOML file\n"
             "  -q, --quit           end the daemon\n"
             "  -v  print the version\n"
             "Without -d and -f: console, one command a line from standard input.\n"
             "Simulated by gpusim.\n");
  return out == stdout ? 0 : 2;
}

int usage_error(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
  return usage(stderr);
}

enum class Mode { kConsole, kBackground, kForeground, kQuit };

int run_control(int argc, char** argv) {
  Mode mode = Mode::kConsole;
  DaemonOptions options;
  std::string protocol = "2";
  std::string config_path;
  std::string command;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (!command.empty() || (!flag.empty() && flag[0] != '-')) {
      command += (command.empty() ? "" : " ") + flag;
    } else if (flag == "-d" || flag == "--daemon") {
      mode = Mode::kBackground;
    } else if (flag == "-f" || flag == "--foreground") {
      mode = Mode::kForeground;
    } else if (flag == "-q" || flag == "--quit") {
      mode = Mode::kQuit;
    } else if (flag == "-multiuser-server" || flag == "-M" || flag == "-m" ||
               flag == "--multiuser") {
      options.multiuser = true;
    } else if (flag == "-S" || flag == "--static-partitioning") {
      options.static_partitions = true;
    } else if (flag == "-p" || flag == "--protocol" || flag == "-a" || flag == "--apply") {
      if (i + 1 >= argc) return usage_error(fmt::format("{} needs a value", flag));
      (flag == "-p" || flag == "--protocol" ? protocol : config_path) = argv[++i];
    } else if (flag == "-v") {
      std::string ignored;
      fmt::print("CUDA MPS Control binary version: {}\n",
                 ask_driver_traits(load_settings(&ignored)).cuda_version);
      return 0;
    } else if (flag == "-h" || flag == "--help") {
      return usage(stdout);
    } else {
      return usage_error(fmt::format("Unknown option: {}", flag));
    }
  }
  if (!command.empty()) return run_command(command);
  if (mode == Mode::kConsole) return run_console();
  if (mode == Mode::kQuit) return run_command("quit");
  // The environment wins over the flag.
  const char* version = getenv("CUDA_MPS_PROTOCOL_VERSION");
  if (version != nullptr && version[0] != '\0') protocol = version;
  if (protocol != "2" && protocol != "3") {
    return usage_error(fmt::format("The protocol version is 2 or 3, not '{}'", protocol));
  }
  options.v3 = protocol == "3";
  if (options.v3) use_v3_paths();
  if (!config_path.empty()) {
    if (!options.v3) return usage_error("-a is of protocol 3: add -p 3");
    auto config = read_v3_config(config_path);
    if (const auto* error = std::get_if<std::string>(&config)) {
      fmt::print(stderr, "{}\n", *error);
      return 1;
    }
    options.config = std::move(std::get<V3Config>(config));
  }
  return mode == Mode::kBackground ? run_background(std::move(options))
                                   : run_foreground(std::move(options));
}

}  // namespace
}  // namespace gpusim::mps

int main(int argc, char** argv) {
  try {
    const std::string program =
        argc > 0 ? std::filesystem::path(argv[0]).filename().string() : std::string();
    if (program == gpusim::mps::kServerProgram) return gpusim::mps::run_server();
    return gpusim::mps::run_control(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "nvidia-cuda-mps-control: {}\n", error.what());
    return 1;
  }
}
