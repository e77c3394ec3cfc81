// The servers' processes: start, messages, end.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "common/unix_socket.h"
#include "mps/control_daemon.h"
#include "mps/paths.h"
#include "mps/process_info.h"

namespace gpusim::mps {
namespace {

// A server that cannot start is tried again so often, then its clients get 805 (bottlerocket issue
// 4673: a pipe directory that the server's user cannot traverse).
constexpr uint32_t kStartRetries = 5;

uint32_t first_free_number(const Server& server) {
  uint32_t number = 0;
  const auto taken = [&] {
    return std::any_of(server.clients.begin(), server.clients.end(),
                       [&](const ServerClient& client) { return client.number == number; });
  };
  while (taken()) ++number;
  return number;
}

}  // namespace

Server* ControlDaemon::start_server(uint32_t uid) {
  Server& server = state_.servers.emplace_back();
  server.uid = uid;
  server.defaults = state_.defaults;
  if (state_.settings.uuid_defaults == Choice::kOff) server.defaults.limits.drop_uuids();
  if (launch(&server)) return &server;
  state_.servers.pop_back();
  return nullptr;
}

// Starts the server's process.
bool ControlDaemon::launch(Server* server) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
  const std::string settings = state_.settings.text();
  const std::string pipe = pipe_directory();
  const std::string logs =
      server->name.empty() ? log_directory() : log_directory() + "/" + server->name;
  const pid_t pid = fork();
  if (pid < 0) {
    close(pair[0]);
    close(pair[1]);
    return false;
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
    setenv("GPUSIM_MPS", settings.c_str(), 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", pipe.c_str(), 1);
    setenv("CUDA_MPS_LOG_DIRECTORY", logs.c_str(), 1);
    if (!server->allowed_devices.empty()) {
      setenv("CUDA_VISIBLE_DEVICES", server->allowed_devices.c_str(), 1);
    }
    execl("/proc/self/exe", kServerProgram, static_cast<char*>(nullptr));
    _exit(1);
  }
  close(pair[1]);
  server->pid = pid;
  server->channel = pair[0];
  server->state = ServerState::kInitializing;
  ChannelMessage config = {};
  config.kind = ChannelKind::kConfig;
  config.uid = server->uid;
  config.multiuser = state_.multiuser ? 1 : 0;
  put_defaults(server->defaults, &config);
  send_to(server, config);
  state_.log.line(fmt::format("Starting new server {} for user {}", pid, server->uid));
  return true;
}

bool ControlDaemon::send_to(Server* server, const ChannelMessage& message) {
  return send_message(server->channel, &message, sizeof message, MSG_DONTWAIT);
}

void ControlDaemon::send_defaults(Server* server) {
  auto message = std::make_unique<ChannelMessage>();
  message->kind = ChannelKind::kDefaults;
  put_defaults(server->defaults, message.get());
  send_to(server, *message);
}

void ControlDaemon::serve_channel(Server* server) {
  if (server->channel < 0) return;  // closed in this turn already
  auto message = std::make_unique<ChannelMessage>();
  if (!receive_message(server->channel, message.get(), sizeof *message, MSG_DONTWAIT)) {
    if (errno == EAGAIN) return;
    close(server->channel);  // its exit is seen by SIGCHLD
    server->channel = -1;
    server->ending = true;
    return;
  }
  const int32_t pid = message->pid;
  switch (message->kind) {
    case ChannelKind::kReady:
      become_ready(server, *message);
      break;
    case ChannelKind::kClientAdded:
      server->in_flight -= std::min(server->in_flight, 1u);
      server->clients.push_back({pid, first_free_number(*server), message->shown_pid,
                                 message->devices, message->space, message->partition});
      break;
    case ChannelKind::kClientRejected:
      server->in_flight -= std::min(server->in_flight, 1u);
      break;
    case ChannelKind::kClientGone:
      std::erase_if(server->clients, [pid](const ServerClient& c) { return c.id == pid; });
      break;
    case ChannelKind::kTerminated:
      for (Console& console : state_.consoles) {
        if (console.waits_for_termination != pid) continue;
        if (console.terminating_server != server->pid) continue;
        console.waits_for_termination = 0;
        answer(&console, fmt::format("{}\n", message->result));
      }
      break;
    case ChannelKind::kFault:
      server->state = ServerState::kFault;
      break;
    case ChannelKind::kRecovered:
      server->state = ServerState::kActive;
      break;
    default:
      break;
  }
  end_idle_servers(false);
}

void ControlDaemon::become_ready(Server* server, const ChannelMessage& message) {
  server->state = ServerState::kActive;
  server->was_ready = true;
  failed_starts_ = 0;
  server->uuids.clear();
  for (uint32_t i = 0; i < message.count && i < kMaxDevices; ++i) {
    server->uuids.emplace_back(message.uuids[i]);
  }
  state_.log.line(fmt::format("NEW SERVER {}: Ready", server->pid));
  if (!state_.v3) return;
  server->partitions.set_devices(ask_devices(server->uuids));
  for (const std::string& name : server->partitions.create_configured()) {
    state_.log.line(fmt::format("SM partition {} could not be created", name));
  }
}

// Ends the servers that shall end, once they have no clients (or at once, by force).
void ControlDaemon::end_idle_servers(bool force) {
  for (Server& server : state_.servers) {
    if (state_.quitting) server.ending = true;
    const bool idle = server.clients.empty() && server.in_flight == 0;
    if (!server.ending || server.told_to_end || server.pid == 0 || (!idle && !force)) continue;
    server.told_to_end = true;
    ChannelMessage message = {};
    message.kind = ChannelKind::kShutdown;
    if (server.channel < 0 || !send_to(&server, message)) kill(server.pid, SIGKILL);
  }
}

// Answers the consoles that wait for something that cannot come any more.
void ControlDaemon::answer_for_dead_server(int32_t pid) {
  for (Console& console : state_.consoles) {
    if (console.waits_for_server_exit == pid) {
      console.waits_for_server_exit = 0;
      answer(&console, "");
    }
    if (console.waits_for_termination != 0 && console.terminating_server == pid) {
      console.waits_for_termination = 0;
      answer(&console, fmt::format("{}\n", kMpsConnectionFailed));
    }
  }
}

void ControlDaemon::reap_servers() {
  for (auto at = state_.servers.begin(); at != state_.servers.end();) {
    int status = 0;
    if (at->pid == 0) {
      ++at;
      continue;
    }
    if (waitpid(at->pid, &status, WNOHANG) != at->pid) {
      ++at;
      continue;
    }
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (code != 0) state_.log.line("Server encountered a fatal exception. Shutting down");
    state_.log.line(fmt::format("Server {} exited with status {}", at->pid, code));
    const bool failed_to_start = !at->was_ready && !at->told_to_end;
    const int32_t pid = at->pid;
    if (at->channel >= 0) close(at->channel);
    at->channel = -1;
    if (state_.v3 && WIFSIGNALED(status) && !at->told_to_end) {
      at->pid = 0;  // started again for the next client
      at->state = ServerState::kStopped;
      at->in_flight = 0;
      at->ending = false;
      at->clients.clear();
      at->partitions.forget_created();
      ++at;
    } else {
      remove_server_files(&*at);
      at = state_.servers.erase(at);
      state_.has_erased = true;
    }
    answer_for_dead_server(pid);
    if (state_.v3) continue;
    if (!failed_to_start) continue;
    if (failed_starts_++ < kStartRetries) continue;
    failed_starts_ = 0;
    for (Waiting& waiting : state_.waiting) {
      if (waiting.fd >= 0 && waiting.greeted) refuse(&waiting, kMpsConnectionFailed);
    }
  }
}

}  // namespace gpusim::mps
