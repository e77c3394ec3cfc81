#include "mps/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/daemon_state.h"
#include "mps/paths.h"
#include "mps/server_process.h"

namespace gpusim::mps {
void ServerProcess::report(ChannelKind kind, int32_t pid, int32_t result) {
  auto message = std::make_unique<ChannelMessage>();
  message->kind = kind;
  message->pid = pid;
  message->result = result;
  if (kind == ChannelKind::kReady) {
    message->count = static_cast<uint32_t>(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      copy_text(devices_[i].info.uuid, message->uuids[i], kUuidTextSize);
    }
  }
  send_message(kChannelFd, message.get(), sizeof *message);
}

void ServerProcess::report_added(const ChannelMessage& client, int32_t pid, uint64_t devices) {
  auto message = std::make_unique<ChannelMessage>();
  message->kind = ChannelKind::kClientAdded;
  message->pid = pid;
  message->shown_pid = shown_pid(pid);
  message->devices = devices;
  copy_text(client.space, message->space, sizeof message->space);
  copy_text(client.partition, message->partition, sizeof message->partition);
  send_message(kChannelFd, message.get(), sizeof *message);
}

int32_t ServerProcess::shown_pid(int32_t pid) const {
  const auto found = clients_.find(pid);
  return found == clients_.end() ? pid : found->second.shown_pid;
}

std::string ServerProcess::name_of(int32_t pid) const {
  return fmt::format("{{PID: {}, Context ID: 0}}", shown_pid(pid));
}

// By path and as the client's user: every folder on the way must be open to that user.
bool ServerProcess::reach_daemon() {
  const std::string control = in_pipe_directory(kControlSocket);
  log_.line(fmt::format("Connecting to control daemon on socket: {}", control));
  const int fifo = open(in_pipe_directory(kLogFifo).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fifo >= 0) close(fifo);
  if (fifo >= 0 && access(control.c_str(), W_OK) == 0) return true;
  log_.line(fmt::format("Failed to connect to control daemon: {}", strerror(errno)));
  return false;
}

bool ServerProcess::open_devices() {
  if (driver_.connect_to(driver_folder(), Role::kMpsServer) != Status::kOk ||
      events_.open(driver_folder(), Role::kObserver) != Status::kOk) {
    log_.line(fmt::format("Failed to start : no driver at {}", driver_folder()));
    return false;
  }
  devices_.resize(kMaxDevices);
  uint32_t count = 0;
  if (list_devices_with_file(&driver_, driver_folder(), devices_.data(), &count) != Status::kOk) {
    return false;
  }
  apply_cuda_visible_devices(getenv("CUDA_VISIBLE_DEVICES"), devices_.data(), &count);
  devices_.resize(count);
  if (devices_.empty()) {
    log_.line("Failed to start : no CUDA-capable device is detected");
    return false;
  }
  for (size_t i = 0; i < devices_.size(); ++i) {
    log_.line(fmt::format("Creating server context on device {} ({})", i, devices_[i].info.name));
    Request request = make_request(Op::kContextCreate, devices_[i].driver_index);
    Reply reply;
    if (driver_.call(&request, &reply) != Status::kOk) {
      log_.line("Failed to start : all CUDA-capable devices are busy or unavailable");
      return false;
    }
  }
  return true;
}

void ServerProcess::log_defaults() {
  log_.line(fmt::format("Active Threads Percentage set to {}", show_percent(defaults_.hundredths)));
  uint64_t limits[kMaxDevices] = {};
  defaults_.limits.resolve(devices_, limits);
  for (size_t i = 0; i < devices_.size(); ++i) {
    const uint64_t bytes = limits[devices_[i].driver_index];
    if (bytes == 0) continue;
    log_.line(
        fmt::format("Device pinned memory limit for device {} set to 0x{:x} bytes", i, bytes));
  }
  log_.line(fmt::format("Server Priority set to {}", defaults_.priority));
}

bool ServerProcess::stay_initializing() {
  const uint64_t until = now_ms() + settings_.initializing_ms;
  while (true) {
    const uint64_t now = now_ms();
    if (now >= until) return true;
    pollfd entry = {kChannelFd, POLLIN, 0};
    if (poll(&entry, 1, static_cast<int>(until - now)) > 0 && (!serve_channel() || shut_down_)) {
      return false;
    }
  }
}

bool ServerProcess::start(const ChannelMessage& config) {
  std::string ignored;
  settings_ = load_settings(&ignored);
  traits_ = ask_driver_traits(settings_);
  log_.open(log_directory() + "/server.log", "Other");
  log_.line("Startup");
  // The server runs as its client's user, unless it serves all.
  if (geteuid() == 0 && config.uid != 0 &&
      (setgroups(0, nullptr) != 0 || setgid(config.uid) != 0 || setuid(config.uid) != 0)) {
    log_.line(fmt::format("Failed to start : cannot become user {}", config.uid));
    return false;
  }
  if (!reach_daemon()) return false;
  log_.line("Initializing server process");
  defaults_ = take_defaults(config);
  multiuser_ = config.multiuser != 0;
  if (!open_devices()) return false;
  log_.set_tag("Server");
  if (!traits_.named_memory) {
    log_.line(
        fmt::format("Created anonymous shared memory region mps.shm.{}.{}", geteuid(), getpid()));
  } else if (shared_memory_.create()) {
    log_.line(fmt::format("Created named shared memory region {}", shared_memory_.name()));
  } else {
    log_.line(fmt::format("Failed to create shared memory: {}", strerror(errno)));
    return false;
  }
  log_.line(
      fmt::format("CUDA MPS Server for Linux/Unix. Binary version: {}", traits_.cuda_version));
  log_.line(fmt::format("Display Driver version: {}", traits_.major));
  log_defaults();
  if (!stay_initializing()) return false;
  log_.line("Server has started");
  report(ChannelKind::kReady, getpid());
  return true;
}

bool ServerProcess::serve_channel() {
  auto message = std::make_unique<ChannelMessage>();
  int fd = -1;
  if (!receive_message_with_fd(kChannelFd, message.get(), sizeof *message, &fd)) {
    // The daemon is gone. Clients that are connected are served to their end.
    if (fd >= 0) close(fd);
    log_.line("Lost connection to control daemon");
    return false;
  }
  switch (message->kind) {
    case ChannelKind::kClient:
      if (fd >= 0) {
        add_client(*message, fd);
      } else {
        // No descriptor was free to receive it: its connection is closed, which is 805.
        report(ChannelKind::kClientRejected, message->pid);
      }
      return true;
    case ChannelKind::kDefaults:
      defaults_ = take_defaults(*message);
      log_defaults();
      break;
    case ChannelKind::kTerminate:
      terminate(message->pid);
      break;
    case ChannelKind::kShutdown:
      log_.line("Server is shutting down");
      shut_down_ = true;
      break;
    default:
      break;
  }
  if (fd >= 0) close(fd);
  return true;
}

int ServerProcess::run() {
  auto config = std::make_unique<ChannelMessage>();
  int fd = -1;
  if (!receive_message_with_fd(kChannelFd, config.get(), sizeof *config, &fd) ||
      config->kind != ChannelKind::kConfig)
    return 1;
  if (!start(*config)) return shut_down_ ? 0 : 1;
  bool has_daemon = true;
  while (!shut_down_ && (has_daemon || !clients_.empty())) {
    std::vector<pollfd> watched;
    watched.push_back({has_daemon ? kChannelFd : -1, POLLIN, 0});
    watched.push_back({driver_.fd(), POLLIN, 0});
    watched.push_back({events_.fd(), POLLIN, 0});
    std::vector<int32_t> pids;
    for (const auto& [pid, client] : clients_) {
      pids.push_back(pid);
      watched.push_back({client.fd, POLLIN, 0});
      watched.push_back({client.pidfd, POLLIN, 0});
    }
    if (poll(watched.data(), watched.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return 1;
    }
    if (watched[1].revents != 0) {
      log_.line("Lost the driver");
      return 1;
    }
    // Before the ends of clients: a fault is often followed by them at once.
    if (watched[2].revents != 0 && !read_events()) {
      log_.line("Lost the device");
      return 1;
    }
    for (size_t i = 0; i < pids.size(); ++i) {
      if (watched[3 + 2 * i].revents != 0) read_client(pids[i]);
      if (watched[4 + 2 * i].revents != 0) drop_client(pids[i]);
    }
    if (must_exit_) return 1;
    if (watched[0].revents != 0) has_daemon = serve_channel();
  }
  return 0;
}

int run_server() {
  prctl(PR_SET_NAME, kServerProgram);  // started by another name (/proc/self/exe)
  return ServerProcess().run();
}

}  // namespace gpusim::mps
