#include "mps/server.h"

#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "common/driver_client.h"
#include "common/peer.h"
#include "common/pinned_limit.h"
#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/channel.h"
#include "mps/limits.h"
#include "mps/log.h"
#include "mps/paths.h"

namespace gpusim::mps {
namespace {

constexpr uint32_t kFullPercent = 10000;
// Processes, however idle. The contexts per device are counted, and refused with 808, by gpusimd.
constexpr size_t kMaxClients = 1024;

struct Client {
  int fd;
  int pidfd;
};

class Server {
 public:
  int run();

 private:
  bool start(const ChannelMessage& config);
  bool open_devices();
  void log_limits();
  // False: the daemon is gone.
  bool serve_channel();
  void add_client(const ChannelMessage& message, int fd);
  int32_t admit(const ChannelMessage& message, const Peer& peer, ClientWelcome* welcome);
  void drop_client(int32_t pid);
  void terminate(int32_t pid);
  void report(ChannelKind kind, int32_t pid, uint64_t devices = 0, int32_t result = 0);

  Log log_;
  DriverClient driver_;
  std::vector<VisibleDevice> devices_;
  LimitTable limits_;
  uint32_t hundredths_ = kFullPercent;
  std::map<int32_t, Client> clients_;
};

// A descriptor may come along.
bool receive_from_daemon(ChannelMessage* message, int* fd) {
  *fd = -1;
  iovec part = {message, sizeof *message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t size;
  do {
    size = recvmsg(kChannelFd, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  const cmsghdr* attached = CMSG_FIRSTHDR(&header);
  if (size >= 0 && attached != nullptr && attached->cmsg_type == SCM_RIGHTS) {
    memcpy(fd, CMSG_DATA(attached), sizeof *fd);
  }
  return size == static_cast<ssize_t>(sizeof *message);
}

void Server::report(ChannelKind kind, int32_t pid, uint64_t devices, int32_t result) {
  auto message = std::make_unique<ChannelMessage>();
  message->kind = kind;
  message->pid = pid;
  message->devices = devices;
  message->result = result;
  if (kind == ChannelKind::kReady) {
    message->count = static_cast<uint32_t>(devices_.size());
    for (size_t i = 0; i < devices_.size(); ++i) {
      copy_text(devices_[i].info.uuid, message->uuids[i], kUuidTextSize);
    }
  }
  send_message(kChannelFd, message.get(), sizeof *message);
}

bool Server::open_devices() {
  if (driver_.connect_to(driver_folder(), Role::kMpsServer) != Status::kOk) {
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

void Server::log_limits() {
  uint64_t limits[kMaxDevices] = {};
  limits_.resolve(devices_, limits);
  for (size_t i = 0; i < devices_.size(); ++i) {
    const uint64_t bytes = limits[devices_[i].driver_index];
    if (bytes == 0) continue;
    log_.line(
        fmt::format("Device pinned memory limit for device {} set to 0x{:x} bytes", i, bytes));
  }
}

bool Server::start(const ChannelMessage& config) {
  const std::string log_path = log_directory() + "/server.log";
  log_.open(log_path, "Other");
  log_.line("Startup");
  log_.line(
      fmt::format("Connecting to control daemon on socket: {}", in_pipe_directory(kControlSocket)));
  // The server runs as its client's user, unless it serves all.
  if (geteuid() == 0 && config.uid != 0 &&
      (setgroups(0, nullptr) != 0 || setgid(config.uid) != 0 || setuid(config.uid) != 0)) {
    log_.line(fmt::format("Failed to start : cannot become user {}", config.uid));
    return false;
  }
  log_.line("Initializing server process");
  for (uint32_t i = 0; i < config.count && i < kMaxLimitKeys; ++i) {
    limits_.set(config.limits[i].key, config.limits[i].bytes);
  }
  hundredths_ = config.hundredths;
  if (!open_devices()) return false;
  log_.set_tag("Server");
  log_.line(
      fmt::format("Created anonymous shared memory region mps.shm.{}.{}", geteuid(), getpid()));
  log_.line(fmt::format("CUDA MPS Server for Linux/Unix. Binary version: {}", kCudaVersion));
  log_.line(
      fmt::format("Display Driver version: {}", std::string_view(kDriverVersion).substr(0, 3)));
  log_.line(fmt::format("Active Threads Percentage set to {}", show_percent(hundredths_)));
  log_limits();
  log_.line("Server Priority set to 0");
  log_.line("Server has started");
  report(ChannelKind::kReady, getpid());
  return true;
}

int32_t Server::admit(const ChannelMessage& message, const Peer& peer, ClientWelcome* welcome) {
  const ClientHello& hello = message.hello;
  // The client's own view: what it has device files for, in the server's order, then its
  // CUDA_VISIBLE_DEVICES. Ordinals in its limit count in that list.
  std::vector<VisibleDevice> view;
  for (const VisibleDevice& device : devices_) {
    if ((hello.devices >> device.driver_index & 1) != 0) view.push_back(device);
  }
  uint32_t count = static_cast<uint32_t>(view.size());
  if (hello.has_visible_devices != 0) {
    view.resize(kMaxDevices);
    apply_cuda_visible_devices(hello.visible_devices, view.data(), &count);
  }
  Request request = make_request(Op::kMpsAdmit);
  request.pid = peer.pid;
  limits_.resolve(devices_, request.limits);
  uint64_t narrowed[kMaxDevices] = {};
  apply_pinned_limits(hello.pinned_limit, view.data(), count, narrowed);
  for (uint32_t i = 0; i < kMaxDevices; ++i) {
    // The environment only lowers what the server gives.
    if (narrowed[i] == 0) continue;
    if (request.limits[i] == 0 || narrowed[i] < request.limits[i]) request.limits[i] = narrowed[i];
  }
  Reply reply;
  if (driver_.call(&request, &reply) != Status::kOk) return kMpsConnectionFailed;
  welcome->percent_hundredths = hundredths_;
  if (hello.percent_hundredths != 0) {
    welcome->percent_hundredths = std::min(hundredths_, hello.percent_hundredths);
  }
  welcome->device_count = count;
  for (uint32_t i = 0; i < count; ++i) {
    welcome->devices[i] = static_cast<uint8_t>(view[i].driver_index);
  }
  return kMpsOk;
}

void Server::add_client(const ChannelMessage& message, int fd) {
  ClientWelcome welcome = {};
  welcome.magic = kMpsMagic;
  welcome.server_pid = getpid();
  welcome.result = kMpsConnectionFailed;
  Peer peer;
  if (identify_peer(fd, &peer)) {
    log_.line(fmt::format("Received new client request for {{PID: {}, Context ID: 0}}", peer.pid));
    if (clients_.size() >= kMaxClients) {
      welcome.result = kMpsMaxClientsReached;
    } else if (!clients_.contains(peer.pid)) {
      welcome.result = admit(message, peer, &welcome);
    }
  }
  const bool told = send_message(fd, &welcome, sizeof welcome, MSG_DONTWAIT);
  if (welcome.result != kMpsOk) {
    if (peer.pidfd >= 0) close(peer.pidfd);
    close(fd);
    report(ChannelKind::kClientRejected, message.pid);
    return;
  }
  clients_[peer.pid] = Client{fd, peer.pidfd};
  log_.line(fmt::format("Client {{PID: {}, Context ID: 0}} connected", peer.pid));
  uint64_t devices = 0;
  for (uint32_t i = 0; i < welcome.device_count; ++i) {
    devices |= uint64_t{1} << welcome.devices[i];
    for (const VisibleDevice& device : devices_) {
      if (device.driver_index != welcome.devices[i]) continue;
      log_.line(
          fmt::format("Device {} (uuid {}) is associated", device.info.name, device.info.uuid));
    }
  }
  // By the server's own ordinals, which is how the daemon knows the devices.
  uint64_t ordinals = 0;
  for (size_t i = 0; i < devices_.size(); ++i) {
    if ((devices >> devices_[i].driver_index & 1) != 0) ordinals |= uint64_t{1} << i;
  }
  report(ChannelKind::kClientAdded, peer.pid, ordinals);
  if (!told) drop_client(peer.pid);
}

void Server::drop_client(int32_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  close(found->second.fd);
  close(found->second.pidfd);
  clients_.erase(found);
  Request request = make_request(Op::kMpsRelease);
  request.pid = pid;
  Reply reply;
  driver_.call(&request, &reply);
  log_.line("Receive command failed, assuming client exit");
  log_.line("Client process disconnected");
  log_.line(
      fmt::format("Client disconnected. Number of active client contexts is {}", clients_.size()));
  report(ChannelKind::kClientGone, pid);
}

void Server::terminate(int32_t pid) {
  Request request = make_request(Op::kMpsTerminate);
  request.pid = pid;
  Reply reply;
  const bool known = clients_.contains(pid);
  if (known) driver_.call(&request, &reply);
  if (known) log_.line(fmt::format("Client {{PID: {}, Context ID: 0}} terminated", pid));
  // The process itself lives on, so it stays a client until it ends.
  report(ChannelKind::kTerminated, pid, 0, known ? kMpsOk : kMpsConnectionFailed);
}

bool Server::serve_channel() {
  auto message = std::make_unique<ChannelMessage>();
  int fd = -1;
  if (!receive_from_daemon(message.get(), &fd)) {
    // The daemon is gone. Clients that are connected are served to their end.
    if (fd >= 0) close(fd);
    log_.line("Lost connection to control daemon");
    return false;
  }
  switch (message->kind) {
    case ChannelKind::kClient:
      if (fd >= 0) add_client(*message, fd);
      return true;
    case ChannelKind::kSetLimit:
      limits_.set(message->limits[0].key, message->limits[0].bytes);
      log_limits();
      break;
    case ChannelKind::kSetPercent:
      hundredths_ = message->hundredths;
      log_.line(fmt::format("Active Threads Percentage set to {}", show_percent(hundredths_)));
      break;
    case ChannelKind::kTerminate:
      terminate(message->pid);
      break;
    case ChannelKind::kShutdown:
      log_.line("Server is shutting down");
      exit(0);
    default:
      break;
  }
  if (fd >= 0) close(fd);
  return true;
}

int Server::run() {
  auto config = std::make_unique<ChannelMessage>();
  int fd = -1;
  if (!receive_from_daemon(config.get(), &fd) || config->kind != ChannelKind::kConfig) return 1;
  if (!start(*config)) return 1;
  bool has_daemon = true;
  while (has_daemon || !clients_.empty()) {
    std::vector<pollfd> watched;
    watched.push_back({has_daemon ? kChannelFd : -1, POLLIN, 0});
    watched.push_back({driver_.fd(), POLLIN, 0});
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
    for (size_t i = 0; i < pids.size(); ++i) {
      // After its hello a client has nothing to say: anything, its end included, ends it.
      if (watched[2 + 2 * i].revents != 0 || watched[3 + 2 * i].revents != 0) drop_client(pids[i]);
    }
    if (watched[0].revents != 0) has_daemon = serve_channel();
  }
  return 0;
}

}  // namespace

int run_server() {
  return Server().run();
}

}  // namespace gpusim::mps
