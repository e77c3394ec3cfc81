// Who comes and goes at an MPS server.
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "common/pinned_limit.h"
#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/server_process.h"

namespace gpusim::mps {
namespace {

// Processes, however idle. The contexts per device are counted, and refused with 808, by gpusimd.
constexpr size_t kMaxClients = 1024;

bool connect_pair(int* pair) {
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
  const int on = 1;
  for (int i = 0; i < 2; ++i) setsockopt(pair[i], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  return true;
}

bool chance(uint32_t percent) {
  uint32_t random = 0;
  return percent != 0 && getrandom(&random, sizeof random, 0) == sizeof random &&
         random % 100 < percent;
}

}  // namespace

bool ServerProcess::is_before_volta() const {
  constexpr uint32_t kVoltaMajor = 7;
  return std::any_of(devices_.begin(), devices_.end(), [](const VisibleDevice& device) {
    return device.info.cc_major < kVoltaMajor;
  });
}

int32_t ServerProcess::admit(const ChannelMessage& message, int32_t pid, ClientWelcome* welcome) {
  const ClientHello& hello = message.hello;
  // One server for all users needs Volta (MPS documentation; cuda.h names 800 for it).
  if (multiuser_ && is_before_volta()) return kMpsNotPermitted;
  // The client's own view: what it has device files for, in the server's order, then its
  // CUDA_VISIBLE_DEVICES. Ordinals in its limit count in that list.
  std::vector<VisibleDevice> view;
  for (const VisibleDevice& device : devices_) {
    if ((hello.devices >> device.driver_index & 1) != 0) view.push_back(device);
  }
  uint32_t count = static_cast<uint32_t>(view.size());
  view.resize(kMaxDevices);
  apply_cuda_visible_devices(hello.has_visible_devices != 0 ? hello.visible_devices : nullptr,
                             view.data(), &count);
  Request request = make_request(Op::kMpsAdmit);
  request.pid = pid;
  MpsAdmission& terms = request.admission;
  // The daemon's word of the moment when it handed the client over.
  const ClientDefaults defaults = take_defaults(message);
  defaults.limits.resolve(devices_, terms.limits);
  uint64_t narrowed[kMaxDevices] = {};
  if (traits_.has_pinned_limits) {
    apply_pinned_limits(hello.pinned_limit, view.data(), count, narrowed);
  }
  // A client can thus rid itself of every limit, the server's own included.
  DriverInfo driver = {};
  const bool drops_all = driver_.get_driver(&driver) == Status::kOk &&
                         (driver.behaviours & kCraftedLimitDropsAll) != 0;
  if (drops_all && names_unknown_device(hello.pinned_limit, view.data(), count)) {
    std::fill_n(terms.limits, kMaxDevices, 0);
    std::fill_n(narrowed, kMaxDevices, 0);
  }
  for (uint32_t i = 0; i < kMaxDevices; ++i) {
    // The environment only lowers what the server gives.
    if (narrowed[i] == 0) continue;
    if (terms.limits[i] == 0 || narrowed[i] < terms.limits[i]) terms.limits[i] = narrowed[i];
  }
  welcome->percent_hundredths = defaults.hundredths;
  if (hello.percent_hundredths != 0 && message.percentage_rules == 0) {
    welcome->percent_hundredths = std::min(defaults.hundredths, hello.percent_hundredths);
  }
  terms.percent_hundredths = welcome->percent_hundredths;
  terms.connections = hello.connections;
  for (size_t i = 0; i < devices_.size(); ++i) {
    const uint32_t driver_index = devices_[i].driver_index;
    if ((message.partitioned_devices >> i & 1) != 0) {
      terms.partitioned_devices |= uint64_t{1} << driver_index;
    }
    if (message.partition_number == 0 || message.partition_ordinal != i) continue;
    terms.partition = message.partition_number;
    terms.partition_device = driver_index;
  }
  Reply reply;
  if (driver_.call(&request, &reply) != Status::kOk) return kMpsConnectionFailed;
  copy_text(shared_memory_.name(), welcome->shared_memory, sizeof welcome->shared_memory);
  welcome->device_count = count;
  for (uint32_t i = 0; i < count; ++i) {
    welcome->devices[i] = static_cast<uint8_t>(view[i].driver_index);
  }
  return kMpsOk;
}

void ServerProcess::add_client(const ChannelMessage& message, int fd) {
  ClientWelcome welcome = {};
  welcome.magic = kMpsMagic;
  welcome.server_pid = getpid();
  welcome.result = kMpsConnectionFailed;
  Peer peer;
  int32_t id = 0;
  if (identify_peer_anywhere(fd, &peer)) {
    // Where both see the same pids the kernel's word counts; else only gpusimd has the client's.
    id = driver_.own_pid() == getpid() ? peer.pid : message.hello.driver_pid;
    log_.line(
        traits_.old_wording
            ? "Received new client request"
            : fmt::format("Received new client request for {{PID: {}, Context ID: 0}}", peer.pid));
    if (clients_.size() >= kMaxClients) {
      welcome.result = kMpsMaxClientsReached;
    } else if (faulted_devices_ != 0) {
      welcome.result = kMpsServerNotReady;
    } else if (id > 0 && !clients_.contains(id)) {
      welcome.result = admit(message, id, &welcome);
    }
  }
  // The client gets a connection of its own to the server, by SCM_RIGHTS and with SO_PASSCRED set
  // (seen by gVisor, issues 14594 and 14595).
  int pair[2] = {-1, -1};
  if (welcome.result == kMpsOk && !connect_pair(pair)) {
    welcome.result = kMpsConnectionFailed;
    revoke(id);
  }
  bool told = true;
  if (welcome.result == kMpsOk) {
    told = send_message_with_fd(fd, &welcome, sizeof welcome, pair[1], MSG_DONTWAIT);
    close(pair[1]);
  } else {
    send_message(fd, &welcome, sizeof welcome, MSG_DONTWAIT);
  }
  close(fd);
  if (welcome.result != kMpsOk) {
    if (peer.pidfd >= 0) close(peer.pidfd);
    report(ChannelKind::kClientRejected, message.pid);
    return;
  }
  clients_[id] = Client{pair[0], peer.pidfd, peer.pid};
  log_.line(fmt::format("Client {} connected", name_of(id)));
  log_.line(fmt::format("Creating worker thread for client {}", name_of(id)));
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
  report_added(message, id, ordinals);
  if (!told) drop_client(id);
}

// gpusimd forgets that the process is a client.
void ServerProcess::revoke(int32_t pid) {
  Request request = make_request(Op::kMpsRelease);
  request.pid = pid;
  Reply reply;
  driver_.call(&request, &reply);
}

// After its hello a client has nothing to say but its goodbye: anything else ends it.
void ServerProcess::read_client(int32_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  char word = 0;
  const ssize_t size = recv(found->second.fd, &word, sizeof word, MSG_DONTWAIT | MSG_TRUNC);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (size > 0) found->second.said_goodbye = true;  // or noise: in any case nobody killed it
  if (size != sizeof word || word != kGoodbye) drop_client(pid);
}

void ServerProcess::drop_client(int32_t pid) {
  const auto found = clients_.find(pid);
  if (found == clients_.end()) return;
  const int32_t shown = found->second.shown_pid;
  const bool killed = !found->second.said_goodbye && !found->second.terminated;
  close(found->second.fd);
  if (found->second.pidfd >= 0) close(found->second.pidfd);
  clients_.erase(found);
  revoke(pid);
  log_.line("Receive command failed, assuming client exit");
  log_.line("Client process disconnected");
  log_.line(
      fmt::format("Client disconnected. Number of active client contexts is {}", clients_.size()));
  report(ChannelKind::kClientGone, pid);
  forget_affected(pid, shown);
  if (killed && chance(settings_.kill_wedges_percent)) raise(SIGSTOP);
}

// The process itself lives on, so it stays a client until it ends; to kill it then is safe.
void ServerProcess::terminate(int32_t pid) {
  Request request = make_request(Op::kMpsTerminate);
  request.pid = pid;
  Reply reply;
  const auto found = clients_.find(pid);
  if (found != clients_.end()) {
    driver_.call(&request, &reply);
    found->second.terminated = true;
    log_.line(fmt::format("Client {} terminated", name_of(pid)));
  }
  report(ChannelKind::kTerminated, pid, found != clients_.end() ? kMpsOk : kMpsConnectionFailed);
}

}  // namespace gpusim::mps
