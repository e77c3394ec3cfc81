#include "driver/daemon.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/unix_socket.h"
#include "common/xid.h"

namespace gpusim {
namespace {

// epoll tags: session << 2 | kind.
constexpr uint64_t kTagListen = 0;
constexpr uint64_t kTagSocket = 1;
constexpr uint64_t kTagProcess = 2;
constexpr uint64_t kTagStop = 3;

constexpr uint32_t kMaxClients = 8192;
constexpr uint32_t kMaxClientsPerProcess = 32;
constexpr int kEventsPerTurn = 64;
constexpr size_t kMaxEvents = 4096;
constexpr uint64_t kNvmlEventXid = 0x8;
constexpr int kRequestsPerTurn = 16;  // so that one busy client does not starve the others

// Two descriptors a client. The soft limit is raised to the hard one, some are kept back.
uint32_t clients_that_fit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return kMaxClients;
  const uint64_t fitting = limit.rlim_cur > 96 ? (limit.rlim_cur - 64) / 2 : 16;
  return static_cast<uint32_t>(std::min<uint64_t>(kMaxClients, fitting));
}

// Its memory cgroup is that of its start: processes are put there before they run.
std::string cgroup_of(int32_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
  FILE* file = fopen(path, "re");
  if (file == nullptr) return "";
  char text[8192];
  const size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  return cgroup_of_text(std::string_view(text, size));
}

}  // namespace

uint64_t Daemon::now_us() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

Daemon::Daemon(Accounting* accounting, Config config, int listen_fd, int stop_fd)
    : accounting_(accounting),
      config_(std::move(config)),
      listen_fd_(listen_fd),
      stop_fd_(stop_fd),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      max_clients_(clients_that_fit()) {}

Daemon::~Daemon() {
  while (!clients_.empty()) drop(clients_.begin()->first);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

bool Daemon::watch(int fd, uint64_t tag) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  return epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool Daemon::run() {
  if (epoll_fd_ < 0 || !watch(listen_fd_, kTagListen) || !watch(stop_fd_, kTagStop)) return false;
  epoll_event events[kEventsPerTurn];
  while (true) {
    const int count = epoll_wait(epoll_fd_, events, kEventsPerTurn, send_late_answers());
    if (count < 0 && errno != EINTR) return false;
    bool accepting = false;
    // Deaths first: memory of the dead is free before anybody's request of this turn is judged.
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kTagStop) return true;
      if ((tag & 3) == kTagProcess) drop(tag >> 2);
      if (tag == kTagListen) accepting = true;
    }
    for (int i = 0; i < count; ++i) {
      const uint64_t tag = events[i].data.u64;
      if ((tag & 3) != kTagSocket) continue;
      const auto found = clients_.find(tag >> 2);
      if (found != clients_.end() && !serve_one(found->first, &found->second)) drop(tag >> 2);
    }
    if (accepting) accept_clients();
  }
}

void Daemon::accept_clients() {
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    Client client;
    client.fd = fd;
    if (clients_.size() >= max_clients_ || !identify_peer(fd, &client.peer)) {
      close(fd);
      continue;
    }
    const SessionId id = next_session_++;
    const int32_t pid = client.peer.pid;
    const auto known = clients_of_process_.find(pid);
    if ((known != clients_of_process_.end() && known->second >= kMaxClientsPerProcess) ||
        !watch(fd, id << 2 | kTagSocket) || !watch(client.peer.pidfd, id << 2 | kTagProcess)) {
      close(client.peer.pidfd);
      close(fd);
      continue;
    }
    ++clients_of_process_[pid];
    clients_.emplace(id, std::move(client));
  }
}

void Daemon::drop(SessionId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  accounting_->remove_session(id);
  if (found->second.late != nullptr) --late_answers_;
  const auto counted = clients_of_process_.find(found->second.peer.pid);
  if (--counted->second == 0) clients_of_process_.erase(counted);
  close(found->second.fd);
  close(found->second.peer.pidfd);
  clients_.erase(found);
}

// One request a turn: a client waits for its answer before it asks again.
bool Daemon::serve_one(SessionId id, Client* client) {
  Request request;
  const ssize_t size =
      recv(client->fd, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC | MSG_NOSIGNAL);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size != static_cast<ssize_t>(sizeof request) || request.magic != kProtocolMagic ||
      client->owes()) {
    return false;
  }
  Reply reply;
  memset(&reply, 0, sizeof reply);
  reply.magic = kProtocolMagic;
  reply.version = kProtocolVersion;
  reply.op = request.op;
  reply.sequence = request.sequence;
  reply.device_count = static_cast<uint32_t>(accounting_->devices().size());
  const bool is_hello = request.op == Op::kHello;
  if (request.version != kProtocolVersion || client->greeted == is_hello ||
      (is_hello && !greet(id, client, request))) {
    return false;
  }
  if (is_hello) {
    reply.value = last_event_;
    reply.value2 = static_cast<uint64_t>(client->peer.pid);
    return answer(*client, reply);
  }
  if (request.op == Op::kWaitEvent) {
    client->last_event = request.arg == 0 ? last_event_ : request.arg;
    client->wait_sequence = request.sequence;
    client->waits_for_event = true;
    answer_waiting(client);
    return true;
  }
  reply.status = handle(id, *client, request, &reply);
  publish_events();  // before the answer: who has it finds everything done
  const uint64_t slow_ms = request.op < Op::kInjectFault ? accounting_->slow_ms(request.device) : 0;
  if (slow_ms == 0) return answer(*client, reply);
  client->late = std::make_unique<Reply>(reply);
  client->due_us = now_us() + slow_ms * 1000;
  ++late_answers_;
  return true;
}

bool Daemon::greet(SessionId id, Client* client, const Request& request) {
  if (request.flags > static_cast<uint32_t>(Role::kMpsServer)) return false;
  client->greeted = true;
  accounting_->add_session(id, client->peer.pid, static_cast<Role>(request.flags),
                           cgroup_of(client->peer.pid));
  return true;
}

bool Daemon::answer(const Client& client, const Reply& reply) {
  return send_message(client.fd, &reply, sizeof reply, MSG_DONTWAIT);
}

void Daemon::answer_waiting(Client* client) {
  if (events_.empty() || events_.back().sequence <= client->last_event) return;
  const auto next =
      std::upper_bound(events_.begin(), events_.end(), client->last_event,
                       [](uint64_t last, const EventEntry& e) { return last < e.sequence; });
  Reply reply;
  memset(&reply, 0, sizeof reply);
  reply.magic = kProtocolMagic;
  reply.version = kProtocolVersion;
  reply.op = Op::kWaitEvent;
  reply.sequence = client->wait_sequence;
  reply.value = next->sequence;
  reply.event = *next;
  client->waits_for_event = false;
  // A full buffer or a closed end shows at the next read.
  answer(*client, reply);
}

void Daemon::publish_events() {
  const std::vector<EventEntry> fresh = accounting_->take_events();
  if (fresh.empty()) return;
  bool devices_changed = false;
  for (EventEntry event : fresh) {
    event.sequence = ++last_event_;
    event.time_us = now_us();
    events_.push_back(event);
    if (events_.size() > kMaxEvents) events_.pop_front();
    if (event.kind == EventKind::kDeviceRestored) devices_changed = true;
    if (event.type == kNvmlEventXid) config_.kernel_log(xid_line(event));
  }
  if (devices_changed) config_.devices_changed();
  for (auto& [id, client] : clients_) {
    if (client.waits_for_event) answer_waiting(&client);
  }
}

// As the kernel log has it: "NVRM: Xid (PCI:0000:0a:00): 31, pid=13332, name=cuda, ...".
std::string Daemon::xid_line(const EventEntry& event) const {
  const DeviceInfo& info = accounting_->devices()[event.device];
  std::string who = "pid='<unknown>', name=<unknown>";
  if (event.pid != 0) {
    char name[64] = "";
    if (FILE* file = fopen(fmt::format("/proc/{}/comm", event.pid).c_str(), "re")) {
      if (fgets(name, sizeof name, file) != nullptr) name[strcspn(name, "\n")] = '\0';
      fclose(file);
    }
    who = fmt::format("pid={}, name={}", event.pid, name);
  }
  return fmt::format("NVRM: Xid (PCI:{:04x}:{:02x}:{:02x}): {}, {}, {}", info.pci_domain,
                     info.pci_bus, info.pci_device, event.data, who,
                     xid_text(static_cast<uint32_t>(event.data)));
}

int Daemon::send_late_answers() {
  if (late_answers_ == 0) return -1;
  const uint64_t now = now_us();
  uint64_t next_us = UINT64_MAX;
  for (auto& [id, client] : clients_) {
    if (client.late == nullptr) continue;
    if (client.due_us > now) {
      next_us = std::min(next_us, client.due_us);
      continue;
    }
    answer(client, *client.late);
    client.late.reset();
    --late_answers_;
  }
  return next_us == UINT64_MAX ? -1 : static_cast<int>((next_us - now) / 1000 + 1);
}

}  // namespace gpusim
