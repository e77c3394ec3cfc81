// nvidia-cuda-mps-control: console, daemon (-d, -f) and, under the name nvidia-cuda-mps-server, the
// server that the daemon forks.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>

#include "mps/console.h"
#include "mps/control_daemon.h"
#include "mps/server.h"

namespace gpusim::mps {
namespace {

int run_foreground(bool multiuser) {
  ControlDaemon daemon(multiuser);
  if (const auto error = daemon.open()) {
    fmt::print(stderr, "{}\n", *error);
    return 1;
  }
  return daemon.run();
}

void detach_stdio() {
  const int null_fd = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2 && null_fd >= 0; ++fd) dup2(null_fd, fd);
  if (null_fd > 2) close(null_fd);
}

// Descriptors that the caller left open would keep its pipes alive as long as the daemon lives.
void close_inherited(int keep_fd) {
  const long open_max = sysconf(_SC_OPEN_MAX);
  for (int fd = 3; fd < open_max && fd < 4096; ++fd) {
    if (fd != keep_fd) close(fd);
  }
}

// Returns in the parent only, once the daemon accepts connections: 0; else 1 and why.
int run_background(bool multiuser) {
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
    ControlDaemon daemon(multiuser);
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
             "usage: nvidia-cuda-mps-control [-d | -f] [-multiuser-server | -M] [-v]\n"
             "  -d  start the daemon in the background    -f  in the foreground\n"
             "  -multiuser-server, -M  one server for all users\n"
             "  -v  print the version\n"
             "Without -d and -f: console, one command a line from standard input.\n"
             "Simulated by gpusim.\n");
  return out == stdout ? 0 : 2;
}

int run_control(int argc, char** argv) {
  bool background = false;
  bool foreground = false;
  bool multiuser = false;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "-d") {
      background = true;
    } else if (flag == "-f") {
      foreground = true;
    } else if (flag == "-multiuser-server" || flag == "-M") {
      multiuser = true;
    } else if (flag == "-v") {
      fmt::print("CUDA MPS Control binary version: {}\n", kCudaVersion);
      return 0;
    } else if (flag == "-h" || flag == "--help") {
      return usage(stdout);
    } else {
      fmt::print(stderr, "Unknown option: {}\n", flag);
      return usage(stderr);
    }
  }
  if (background) return run_background(multiuser);
  if (foreground) return run_foreground(multiuser);
  return run_console();
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
