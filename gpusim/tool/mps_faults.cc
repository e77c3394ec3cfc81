// Verbs that disturb an MPS control daemon or its server, which are found by --pipe, or by --gpu:
// a GPU's server is in the list of its processes, and the daemon is the server's parent.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "common/text.h"
#include "tool/verbs.h"

namespace gpusim {
namespace {

constexpr char kPipeVariable[] = "CUDA_MPS_PIPE_DIRECTORY";
constexpr char kDefaultPipe[] = "/tmp/nvidia-mps";
constexpr int kTurnMs = 5;
constexpr int kTurnsUntilSeen = 2000;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

pid_t parent_of(pid_t pid) {
  const std::string status = read_file(fmt::format("/proc/{}/status", pid));
  const size_t at = status.find("\nPPid:");
  return at == std::string::npos ? 0 : static_cast<pid_t>(strtol(&status[at + 6], nullptr, 10));
}

std::string pipe_of(pid_t daemon) {
  const std::string environment = read_file(fmt::format("/proc/{}/environ", daemon));
  std::string_view rest = environment;
  while (!rest.empty()) {
    std::string_view value = take_field(&rest, '\0');
    if (take_field(&value, '=') == kPipeVariable) return std::string(value);
  }
  return kDefaultPipe;
}

int servers_of(Command* command, uint32_t device, std::vector<pid_t>* pids) {
  uint64_t row = 0;
  uint64_t total = 0;
  do {
    Request request = make_request(Op::kListProcesses, device);
    request.arg = row;
    Reply reply;
    const Status status = command->driver.call(&request, &reply);
    if (status != Status::kOk) return complain(status, "list of processes");
    total = reply.value;
    if (reply.count == 0) break;
    for (uint32_t i = 0; i < reply.count; ++i) {
      if (reply.processes[i].kind == ProcessKind::kMpsServer)
        pids->push_back(reply.processes[i].pid);
    }
    row += reply.count;
  } while (row < total);
  return kExitOk;
}

struct MpsTarget {
  std::string pipe;
  pid_t daemon = 0;            // 0: not known
  std::vector<pid_t> servers;  // by --gpu
};

int find_target(Command* command, MpsTarget* target) {
  if (command->arguments.has("--gpu")) {
    uint32_t device = 0;
    if (const int code = find_gpu(command, &device); code != kExitOk) return code;
    if (const int code = servers_of(command, device, &target->servers); code != kExitOk)
      return code;
    if (target->servers.empty()) {
      return complain("no MPS server is on this GPU; its daemon can be named by --pipe DIR");
    }
    target->daemon = parent_of(target->servers.front());
    target->pipe = pipe_of(target->daemon);
    return kExitOk;
  }
  if (!command->arguments.has("--pipe")) {
    return complain("--gpu N or --pipe DIR is missing", kExitUsage);
  }
  target->pipe = command->arguments.value("--pipe");
  const std::string pid = read_file(target->pipe + "/nvidia-cuda-mps-control.pid");
  uint64_t number = 0;
  if (parse_number(trim(pid), &number)) target->daemon = static_cast<pid_t>(number);
  return kExitOk;
}

// By the console, which passes what begins with "gpusim" to the daemon.
int tell_daemon(Command* command, const std::string& words) {
  MpsTarget target;
  if (const int code = find_target(command, &target); code != kExitOk) return code;
  std::error_code error;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string console = (binary.parent_path() / "nvidia-cuda-mps-control").string();
  int input[2];
  if (pipe(input) != 0) return complain(strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    dup2(input[0], 0);
    close(input[0]);
    close(input[1]);
    setenv(kPipeVariable, target.pipe.c_str(), 1);
    execl(console.c_str(), console.c_str(), nullptr);
    _exit(127);
  }
  close(input[0]);
  const std::string line = words + "\n";
  const bool written =
      write(input[1], line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(input[1]);
  int status = 0;
  waitpid(child, &status, 0);
  if (written && WIFEXITED(status) && WEXITSTATUS(status) == 0) return kExitOk;
  return complain(fmt::format("no MPS control daemon answers in {}", target.pipe));
}

int kill_process(pid_t pid, const char* what) {
  // A stale pid file may name any process.
  const std::string command = read_file(fmt::format("/proc/{}/cmdline", pid));
  if (command.find("nvidia-cuda-mps") == std::string::npos) {
    return complain(fmt::format("process {} is no {}", pid, what));
  }
  if (pid > 1 && kill(pid, SIGKILL) == 0) return kExitOk;
  return complain(
      fmt::format("cannot kill the {}: {}", what, pid > 1 ? strerror(errno) : "not found"));
}

}  // namespace

int run_hang_mps(Command* command) {
  return tell_daemon(command, "gpusim hang");
}

int run_hang_server(Command* command) {
  return tell_daemon(command, "gpusim hang-server");
}

int run_resume_mps(Command* command) {
  return tell_daemon(command, "gpusim resume");
}

int run_slow_mps(Command* command) {
  std::string error;
  uint64_t milliseconds = 0;
  if (!command->arguments.has("--ms")) return complain("slow-mps needs --ms N", kExitUsage);
  if (!command->arguments.number("--ms", 0, 600000, 0, &milliseconds, &error)) {
    return complain(error, kExitUsage);
  }
  return tell_daemon(command, fmt::format("gpusim slow {}", milliseconds));
}

int run_kill_server(Command* command) {
  uint32_t device = 0;
  if (const int code = find_gpu(command, &device); code != kExitOk) return code;
  std::vector<pid_t> servers;
  if (const int code = servers_of(command, device, &servers); code != kExitOk) return code;
  if (servers.empty()) return complain("no MPS server is on this GPU");
  for (const pid_t pid : servers) {
    if (const int code = kill_process(pid, "MPS server"); code != kExitOk) return code;
  }
  // Done when the driver has seen it: then its clients' next calls fail.
  const std::vector<pid_t> killed = servers;
  for (int turn = 0; turn < kTurnsUntilSeen; ++turn) {
    servers.clear();
    if (const int code = servers_of(command, device, &servers); code != kExitOk) return code;
    const bool gone = std::none_of(killed.begin(), killed.end(), [&](pid_t pid) {
      return std::find(servers.begin(), servers.end(), pid) != servers.end();
    });
    if (gone) return kExitOk;
    poll(nullptr, 0, kTurnMs);
  }
  return complain("the MPS server does not die");
}

int run_kill_mps(Command* command) {
  MpsTarget target;
  if (const int code = find_target(command, &target); code != kExitOk) return code;
  return kill_process(target.daemon, "MPS control daemon");
}

}  // namespace gpusim
