#include "mps/control_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "common/driver_client.h"
#include "common/pinned_limit.h"
#include "common/unix_socket.h"
#include "mps/paths.h"
#include "mps/process_info.h"

namespace gpusim::mps {
namespace {

constexpr int kBacklog = 64;

std::string failed(const char* what, const std::string& path) {
  return fmt::format("{} {}: {}", what, path, strerror(errno));
}

void close_fd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

struct ControlDaemon::Watch {
  int fd;
  std::function<void()> action;
};

ControlDaemon::ControlDaemon(DaemonOptions options) : config_(std::move(options.config)) {
  state_.multiuser = options.multiuser;
  state_.v3 = options.v3;
  state_.static_partitions = options.static_partitions && !options.v3;  // v3 needs no flag
  state_.features = config_.features;
}

ControlDaemon::~ControlDaemon() {
  clean_up();
}

std::optional<std::string> ControlDaemon::open() {
  umask(0);
  std::string settings_error;
  state_.settings = load_settings(&settings_error);
  state_.traits = ask_driver_traits(state_.settings);
  const std::string pipe = pipe_directory();
  const std::string logs = log_directory();
  if (state_.v3 && !state_.traits.has_v3) {
    return fmt::format("Protocol 3 needs driver 615 or newer, this is {}", state_.traits.major);
  }
  if (state_.static_partitions) {
    if (const auto error = open_partitions()) return error;
  }
  for (const std::string& folder : {pipe, logs}) {
    if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return failed("Cannot create directory", folder);
    }
  }
  const std::string lock_path = in_pipe_directory(kLockFile);
  lock_fd_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_fd_ < 0) return failed("Cannot open", lock_path);
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return "An instance of this daemon is already running";
  }
  if (!state_.log.open(logs + "/control.log", "Control")) {
    return failed("Cannot open", logs + "/control.log");
  }
  // What a dead predecessor left: kill -9 leaves everything.
  for (const char* name : {kPidFile, kControlSocket, kPrivilegedSocket, kLogFifo}) {
    unlink(in_pipe_directory(name).c_str());
  }
  owns_files_ = true;
  if (!settings_error.empty()) state_.log.line("gpusim: " + settings_error);
  state_.log.line(
      fmt::format("Starting control daemon using socket {}", in_pipe_directory(kControlSocket)));
  state_.log.line(
      fmt::format("To connect CUDA applications to this daemon, set env "
                  "CUDA_MPS_PIPE_DIRECTORY={}",
                  pipe));
  state_.log.line(fmt::format("CUDA MPS Control binary version: {}", state_.traits.cuda_version));

  const std::string fifo_path = in_pipe_directory(kLogFifo);
  if (mkfifo(fifo_path.c_str(), 0777) != 0) return failed("Cannot create", fifo_path);
  fifo_fd_ = ::open(fifo_path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  privileged_fd_ = listen_seqpacket(pipe.c_str(), kPrivilegedSocket, 0755, kBacklog);
  if (privileged_fd_ < 0) return failed("Cannot listen on", in_pipe_directory(kPrivilegedSocket));
  control_fd_ = listen_seqpacket(pipe.c_str(), kControlSocket, 0666, kBacklog);
  if (control_fd_ < 0) return failed("Cannot listen on", in_pipe_directory(kControlSocket));

  signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

  // On the daemon the clients' variables are defaults.
  if (state_.traits.has_pinned_limits) {
    state_.defaults.limits.set_from_environment(getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"));
  }
  const uint32_t hundredths = parse_thread_percentage(getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
  if (hundredths != 0) state_.defaults.hundredths = hundredths;
  const char* priority = getenv("CUDA_MPS_CLIENT_PRIORITY");
  if (priority != nullptr && strcmp(priority, "1") == 0) state_.defaults.priority = 1;

  if (const auto error = apply_config()) return error;

  const std::string pid_path = in_pipe_directory(kPidFile);
  const int pid_fd = ::open(pid_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (pid_fd < 0) return failed("Cannot write", pid_path);
  const std::string pid_text = fmt::format("{}\n", getpid());
  const ssize_t written = write(pid_fd, pid_text.data(), pid_text.size());
  close(pid_fd);
  if (written < 0) return failed("Cannot write", pid_path);
  return std::nullopt;
}

std::optional<std::string> ControlDaemon::open_partitions() {
  if (!state_.traits.has_partitions) {
    return fmt::format("-S needs CUDA 13.1 or newer, this is {}", state_.traits.cuda_version);
  }
  const std::vector<DeviceInfo> devices = ask_devices({});
  if (devices.empty()) return fmt::format("no driver at {}", driver_folder());
  state_.partitions.set_devices(devices);
  return std::nullopt;
}

void ControlDaemon::clean_up() {
  for (Server& server : state_.servers) {
    close_fd(&server.channel);
    remove_server_files(&server);
  }
  for (Waiting& waiting : state_.waiting) close_fd(&waiting.fd);
  for (Console& console : state_.consoles) close_fd(&console.fd);
  state_.servers.clear();
  state_.waiting.clear();
  state_.consoles.clear();
  for (int* fd : {&control_fd_, &privileged_fd_, &fifo_fd_, &signal_fd_}) close_fd(fd);
  // `control` is left behind, stale, as NVIDIA's daemon may: a client that finds it gets 805.
  if (owns_files_) {
    for (const char* name : {kPidFile, kPrivilegedSocket, kLogFifo}) {
      unlink(in_pipe_directory(name).c_str());
    }
  }
  owns_files_ = false;
  close_fd(&lock_fd_);
}

// A hung daemon looks at nothing but its consoles, where `gpusim resume` may come; connections are
// still accepted by the kernel.
std::vector<ControlDaemon::Watch> ControlDaemon::watches() {
  std::vector<Watch> out;
  out.push_back({privileged_fd_, [this] { accept_console(); }});
  for (Console& console : state_.consoles) {
    if (console.stashed) continue;
    out.push_back({console.fd, [this, &console] { read_command(&console); }});
  }
  if (state_.hung) return out;
  out.push_back({signal_fd_, [this] { read_signals(); }});
  out.push_back({control_fd_, [this] { accept_client(control_fd_, "", ""); }});
  out.push_back({fifo_fd_, [this] { drain_fifo(); }});
  for (Server& server : state_.servers) {
    out.push_back({server.channel, [this, &server] { serve_channel(&server); }});
    out.push_back({server.listen_fd, [this, &server] {
                     accept_client(server.listen_fd, server.name, kDefaultNamespace);
                   }});
    for (Namespace& space : server.namespaces) {
      out.push_back({space.listen_fd, [this, &server, &space] {
                       accept_client(space.listen_fd, server.name, space.spec.name);
                     }});
    }
  }
  for (Waiting& waiting : state_.waiting) {
    if (waiting.greeted) continue;
    out.push_back({waiting.fd, [this, &waiting] { read_hello(&waiting); }});
  }
  return out;
}

int ControlDaemon::poll_timeout_ms() const {
  if (state_.hung) return -1;
  constexpr int kTickMs = 50;
  uint64_t timeout =
      state_.quit_deadline_ms.has_value() || !state_.waiting.empty() ? kTickMs : UINT64_MAX;
  const uint64_t now = now_ms();
  for (const Console& console : state_.consoles) {
    if (!console.late_answer) continue;
    timeout = std::min(timeout, console.due_ms > now ? console.due_ms - now : 0);
  }
  return timeout == UINT64_MAX ? -1 : static_cast<int>(std::min<uint64_t>(timeout, 60000));
}

int ControlDaemon::run() {
  while (true) {
    if (state_.quitting && !state_.hung) {
      end_idle_servers(state_.quit_deadline_ms.has_value() && now_ms() >= *state_.quit_deadline_ms);
      if (state_.servers.empty()) break;
    }
    std::vector<Watch> watched = watches();
    std::vector<pollfd> entries;
    for (const Watch& watch : watched) entries.push_back({watch.fd, POLLIN, 0});
    if (poll(entries.data(), entries.size(), poll_timeout_ms()) < 0 && errno != EINTR) return 1;
    // Lists keep their elements' addresses; after one has been erased no action is taken any more in
    // this turn. Sessions come before what is accepted in it: one that has ended does not collide with
    // the next.
    const size_t first_console = 1;
    state_.has_erased = false;
    for (size_t i = first_console; i < watched.size() && !state_.has_erased; ++i) {
      if (entries[i].revents != 0) watched[i].action();
    }
    if (entries[0].revents != 0 && !state_.has_erased) watched[0].action();
    end_closed_consoles();
    if (state_.hung) continue;
    send_late_answers();
    drop_silent_clients();
    retry_waiting();
  }
  for (Console& console : state_.consoles) {
    if (console.waits_for_quit) answer(&console, "");
  }
  state_.log.line("Exiting");
  clean_up();
  return 0;
}

void ControlDaemon::read_signals() {
  signalfd_siginfo info;
  while (read(signal_fd_, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    state_.quitting = true;
    state_.quit_deadline_ms = now_ms();
  }
  reap_servers();
}

void ControlDaemon::drain_fifo() {
  char ignored[4096];
  while (read(fifo_fd_, ignored, sizeof ignored) > 0) {
  }
}

}  // namespace gpusim::mps
