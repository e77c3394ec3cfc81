#include "mps/control_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "common/pinned_limit.h"
#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/console.h"
#include "mps/paths.h"

namespace gpusim::mps {
namespace {

constexpr int kBacklog = 64;
constexpr size_t kMaxWaiting = 256;
constexpr size_t kMaxConsoles = 64;
constexpr uint64_t kHelloTimeoutMs = 5000;

uint64_t now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

std::string failed(const char* what, const std::string& path) {
  return fmt::format("{} {}: {}", what, path, strerror(errno));
}

void close_fd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

ControlDaemon::~ControlDaemon() {
  clean_up();
}

std::optional<std::string> ControlDaemon::open() {
  umask(0);
  const std::string pipe = pipe_directory();
  const std::string logs = log_directory();
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
  if (!log_.open(logs + "/control.log", "Control")) {
    return failed("Cannot open", logs + "/control.log");
  }
  // What a dead predecessor left: kill -9 leaves everything.
  for (const char* name : {kPidFile, kControlSocket, kPrivilegedSocket, kLogFifo}) {
    unlink(in_pipe_directory(name).c_str());
  }
  owns_files_ = true;
  log_.line(
      fmt::format("Starting control daemon using socket {}", in_pipe_directory(kControlSocket)));
  log_.line(
      fmt::format("To connect CUDA applications to this daemon, set env "
                  "CUDA_MPS_PIPE_DIRECTORY={}",
                  pipe));
  log_.line(fmt::format("CUDA MPS Control binary version: {}", kCudaVersion));

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
  default_limits_.set_from_environment(getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"));
  const uint32_t hundredths = parse_thread_percentage(getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
  if (hundredths != 0) default_hundredths_ = hundredths;

  const std::string pid_path = in_pipe_directory(kPidFile);
  const int pid_fd = ::open(pid_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (pid_fd < 0) return failed("Cannot write", pid_path);
  const std::string pid_text = fmt::format("{}\n", getpid());
  const ssize_t written = write(pid_fd, pid_text.data(), pid_text.size());
  close(pid_fd);
  if (written < 0) return failed("Cannot write", pid_path);
  return std::nullopt;
}

void ControlDaemon::clean_up() {
  for (Server& server : servers_) close_fd(&server.channel);
  for (Waiting& waiting : waiting_) close_fd(&waiting.fd);
  for (Console& console : consoles_) close_fd(&console.fd);
  servers_.clear();
  waiting_.clear();
  consoles_.clear();
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

int ControlDaemon::run() {
  while (true) {
    if (quitting_) {
      end_idle_servers(quit_deadline_ms_.has_value() && now_ms() >= *quit_deadline_ms_);
      if (servers_.empty()) break;
    }
    std::vector<pollfd> watched = {{signal_fd_, POLLIN, 0},
                                   {control_fd_, POLLIN, 0},
                                   {privileged_fd_, POLLIN, 0},
                                   {fifo_fd_, POLLIN, 0}};
    std::vector<std::function<void()>> actions(watched.size());
    actions[0] = [this] {
      signalfd_siginfo info;
      while (read(signal_fd_, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
          quitting_ = true;
          quit_deadline_ms_ = now_ms();
        }
      }
      reap_servers();
    };
    actions[1] = [this] { accept_client(); };
    actions[2] = [this] { accept_console(); };
    actions[3] = [this] { drain_fifo(); };
    for (Server& server : servers_) {
      watched.push_back({server.channel, POLLIN, 0});
      actions.emplace_back([this, &server] { serve_channel(&server); });
    }
    for (Waiting& waiting : waiting_) {
      if (waiting.greeted) continue;
      watched.push_back({waiting.fd, POLLIN, 0});
      actions.emplace_back([this, &waiting] { read_hello(&waiting); });
    }
    for (Console& console : consoles_) {
      watched.push_back({console.fd, POLLIN, 0});
      actions.emplace_back([this, &console] { read_command(&console); });
    }
    const bool has_timers = quit_deadline_ms_.has_value() || !waiting_.empty();
    if (poll(watched.data(), watched.size(), has_timers ? 50 : -1) < 0 && errno != EINTR) return 1;
    // Lists keep their elements' addresses; nothing is erased before all actions have run.
    for (size_t i = watched.size(); i-- > 0;) {
      if (watched[i].revents != 0) actions[i]();
    }
    std::erase_if(waiting_, [](const Waiting& waiting) { return waiting.fd < 0; });
    std::erase_if(consoles_, [](Console& console) {
      if (!console.closed) return false;
      close_fd(&console.fd);
      return true;
    });
    for (Waiting& waiting : waiting_) {
      if (!waiting.greeted && now_ms() - waiting.since_ms > kHelloTimeoutMs) {
        log_.line("User did not send valid credentials");
        close_fd(&waiting.fd);
      }
    }
    retry_waiting();
  }
  for (Console& console : consoles_) {
    if (console.waits_for_quit) answer(&console, "");
  }
  log_.line("Exiting");
  clean_up();
  return 0;
}

void ControlDaemon::accept_client() {
  const int fd = accept4(control_fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  log_.line("Accepting connection...");
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (waiting_.size() >= kMaxWaiting ||
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    close(fd);
    return;
  }
  Waiting& waiting = waiting_.emplace_back();
  waiting.fd = fd;
  waiting.pid = credentials.pid;
  waiting.uid = credentials.uid;
  waiting.since_ms = now_ms();
}

void ControlDaemon::read_hello(Waiting* waiting) {
  if (!receive_message(waiting->fd, &waiting->hello, sizeof waiting->hello, MSG_DONTWAIT) ||
      waiting->hello.magic != kMpsMagic) {
    log_.line("User did not send valid credentials");
    close_fd(&waiting->fd);
    return;
  }
  waiting->hello.visible_devices[kMaxEnvironmentText - 1] = '\0';
  waiting->hello.pinned_limit[kMaxEnvironmentText - 1] = '\0';
  waiting->greeted = true;
  const Server* server = accepting_server();
  const bool exists =
      server != nullptr && server->ready && (multiuser_ || server->uid == waiting->uid);
  log_.line(fmt::format(
      "NEW CLIENT {} from user {}: {}", waiting->pid, waiting->uid,
      exists ? "Server already exists" : "Server is not ready, push client to pending list"));
  place_client(waiting);
}

ControlDaemon::Server* ControlDaemon::accepting_server() {
  for (Server& server : servers_) {
    if (!server.ending) return &server;
  }
  return nullptr;
}

// Hands the client over, starts a server for it, or leaves it in the list.
void ControlDaemon::place_client(Waiting* waiting) {
  if (quitting_) {
    refuse(waiting, kMpsConnectionFailed);
    return;
  }
  Server* server = accepting_server();
  if (server != nullptr && (multiuser_ || server->uid == waiting->uid)) {
    if (server->ready) hand_over(server, waiting);
    return;
  }
  if (server != nullptr) {
    // Another user's server: it is replaced when the last of its clients has gone.
    if (server->ready && server->clients.empty() && server->in_flight == 0) {
      server->ending = true;
      end_idle_servers(false);
    }
    return;
  }
  if (!servers_.empty()) return;  // one that ends must be gone first: one server at a time
  if (start_server(multiuser_ ? geteuid() : waiting->uid) == nullptr) {
    refuse(waiting, kMpsConnectionFailed);
  }
}

void ControlDaemon::retry_waiting() {
  for (Waiting& waiting : waiting_) {
    if (waiting.fd >= 0 && waiting.greeted) place_client(&waiting);
  }
  std::erase_if(waiting_, [](const Waiting& waiting) { return waiting.fd < 0; });
}

void ControlDaemon::hand_over(Server* server, Waiting* waiting) {
  auto message = std::make_unique<ChannelMessage>();
  message->kind = ChannelKind::kClient;
  message->pid = waiting->pid;
  message->uid = waiting->uid;
  message->hello = waiting->hello;
  iovec part = {message.get(), sizeof *message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* attached = CMSG_FIRSTHDR(&header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(attached), &waiting->fd, sizeof(int));
  if (sendmsg(server->channel, &header, MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof *message)) {
    refuse(waiting, kMpsConnectionFailed);
    return;
  }
  server->in_flight += 1;
  close_fd(&waiting->fd);
}

void ControlDaemon::refuse(Waiting* waiting, int32_t result) {
  ClientWelcome welcome = {};
  welcome.magic = kMpsMagic;
  welcome.result = result;
  send_message(waiting->fd, &welcome, sizeof welcome, MSG_DONTWAIT);
  close_fd(&waiting->fd);
}

ControlDaemon::Server* ControlDaemon::start_server(uint32_t uid) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return nullptr;
  const pid_t pid = fork();
  if (pid < 0) {
    close(pair[0]);
    close(pair[1]);
    return nullptr;
  }
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    if (pair[1] == kChannelFd) {
      fcntl(kChannelFd, F_SETFD, 0);
    } else {
      dup2(pair[1], kChannelFd);  // dup2 clears close-on-exec
    }
    execl("/proc/self/exe", kServerProgram, static_cast<char*>(nullptr));
    _exit(1);
  }
  close(pair[1]);
  Server& server = servers_.emplace_back();
  server.pid = pid;
  server.uid = uid;
  server.channel = pair[0];
  server.limits = default_limits_;
  server.hundredths = default_hundredths_;
  ChannelMessage config = {};
  config.kind = ChannelKind::kConfig;
  config.uid = uid;
  config.hundredths = server.hundredths;
  for (const LimitTable::Entry& entry : server.limits.entries()) {
    if (config.count == kMaxLimitKeys) break;
    LimitEntry& limit = config.limits[config.count++];
    copy_text(entry.key, limit.key, sizeof limit.key);
    limit.bytes = entry.bytes;
  }
  send_to(&server, config);
  log_.line(fmt::format("Starting new server {} for user {}", pid, uid));
  return &server;
}

ControlDaemon::Server* ControlDaemon::find_server(int32_t pid) {
  for (Server& server : servers_) {
    if (server.pid == pid) return &server;
  }
  return nullptr;
}

bool ControlDaemon::send_to(Server* server, const ChannelMessage& message) {
  return send_message(server->channel, &message, sizeof message, MSG_DONTWAIT);
}

void ControlDaemon::serve_channel(Server* server) {
  auto message = std::make_unique<ChannelMessage>();
  if (!receive_message(server->channel, message.get(), sizeof *message, MSG_DONTWAIT)) {
    if (errno == EAGAIN) return;
    close_fd(&server->channel);  // its exit is seen by SIGCHLD
    server->ending = true;
    return;
  }
  const int32_t pid = message->pid;
  switch (message->kind) {
    case ChannelKind::kReady:
      server->ready = true;
      for (uint32_t i = 0; i < message->count && i < kMaxDevices; ++i) {
        server->uuids.emplace_back(message->uuids[i]);
      }
      log_.line(fmt::format("NEW SERVER {}: Ready", server->pid));
      break;
    case ChannelKind::kClientAdded:
      server->in_flight -= std::min(server->in_flight, 1u);
      server->clients.push_back({pid, message->devices});
      break;
    case ChannelKind::kClientRejected:
      server->in_flight -= std::min(server->in_flight, 1u);
      break;
    case ChannelKind::kClientGone:
      std::erase_if(server->clients, [pid](const ServerClient& c) { return c.pid == pid; });
      break;
    case ChannelKind::kTerminated:
      for (Console& console : consoles_) {
        if (console.waits_for_termination != pid) continue;
        console.waits_for_termination = 0;
        answer(&console, fmt::format("{}\n", message->result));
      }
      break;
    default:
      break;
  }
  end_idle_servers(false);
}

// Ends the servers that shall end, once they have no clients (or at once, by force).
void ControlDaemon::end_idle_servers(bool force) {
  for (Server& server : servers_) {
    if (quitting_) server.ending = true;
    const bool idle = server.clients.empty() && server.in_flight == 0;
    if (!server.ending || server.told_to_end || (!idle && !force)) continue;
    server.told_to_end = true;
    ChannelMessage message = {};
    message.kind = ChannelKind::kShutdown;
    if (server.channel < 0 || !send_to(&server, message)) kill(server.pid, SIGKILL);
  }
}

void ControlDaemon::reap_servers() {
  for (auto at = servers_.begin(); at != servers_.end();) {
    int status = 0;
    if (waitpid(at->pid, &status, WNOHANG) != at->pid) {
      ++at;
      continue;
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (code != 0) log_.line("Server encountered a fatal exception. Shutting down");
    log_.line(fmt::format("Server {} exited with status {}", at->pid, code));
    const bool never_ready = !at->ready;
    const int32_t pid = at->pid;
    close_fd(&at->channel);
    at = servers_.erase(at);
    for (Console& console : consoles_) {
      if (console.waits_for_server_exit == pid) {
        console.waits_for_server_exit = 0;
        answer(&console, "");
      }
      // A server that died cannot confirm any more.
      if (console.waits_for_termination != 0) {
        console.waits_for_termination = 0;
        answer(&console, fmt::format("{}\n", kMpsConnectionFailed));
      }
    }
    if (!never_ready) continue;
    // A server that cannot start would fail the next time too: the clients get their answer.
    for (Waiting& waiting : waiting_) {
      if (waiting.fd >= 0 && waiting.greeted) refuse(&waiting, kMpsConnectionFailed);
    }
  }
}

void ControlDaemon::drain_fifo() {
  char ignored[4096];
  while (read(fifo_fd_, ignored, sizeof ignored) > 0) {
  }
}

void ControlDaemon::accept_console() {
  const int fd = accept4(privileged_fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  if (consoles_.size() >= kMaxConsoles) {
    close(fd);
    return;
  }
  log_.line("Accepting connection...");
  log_.line("NEW UI");
  consoles_.emplace_back().fd = fd;
}

void ControlDaemon::read_command(Console* console) {
  char text[kMaxCommand];
  const ssize_t size = recv(console->fd, text, sizeof text, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size <= 0) {
    log_.line("UI closed");
    console->closed = true;
    return;
  }
  if (console->waits()) return;  // one command at a time
  const std::string_view command(text, static_cast<size_t>(size));
  log_.line(fmt::format("Cmd:{}", command));
  std::vector<std::string> words;
  std::string_view rest = command;
  while (!rest.empty()) {
    const std::string_view word = trim(take_field(&rest, ' '));
    if (!word.empty()) words.emplace_back(word);
  }
  const std::string result = execute(console, words);
  if (!result.empty()) log_.line(trim(result));
  if (!console->waits()) answer(console, result);
}

void ControlDaemon::answer(Console* console, std::string_view text) {
  auto reply = std::make_unique<ConsoleReply>();
  reply->magic = kMpsMagic;
  do {
    const size_t part = std::min(text.size(), sizeof reply->text);
    memcpy(reply->text, text.data(), part);
    text.remove_prefix(part);
    reply->length = static_cast<uint32_t>(part);
    reply->is_last = text.empty() ? 1 : 0;
    if (!send_message(console->fd, reply.get(), sizeof *reply, MSG_DONTWAIT)) {
      console->closed = true;
      return;
    }
  } while (!text.empty());
}

}  // namespace gpusim::mps
