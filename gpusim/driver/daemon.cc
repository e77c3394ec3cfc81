#include "driver/daemon.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/unix_socket.h"

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
constexpr int kRequestsPerTurn = 16;  // so that one busy client does not starve the others

uint64_t now_us() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

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

}  // namespace

Daemon::Daemon(Accounting* accounting, int listen_fd, int stop_fd)
    : accounting_(accounting),
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
    const int count = epoll_wait(epoll_fd_, events, kEventsPerTurn, -1);
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
    const auto same_process =
        std::count_if(clients_.begin(), clients_.end(),
                      [&](const auto& entry) { return entry.second.peer.pid == client.peer.pid; });
    const SessionId id = next_session_++;
    if (same_process >= kMaxClientsPerProcess || !watch(fd, id << 2 | kTagSocket) ||
        !watch(client.peer.pidfd, id << 2 | kTagProcess)) {
      close(client.peer.pidfd);
      close(fd);
      continue;
    }
    clients_.emplace(id, client);
  }
}

void Daemon::drop(SessionId id) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;
  accounting_->remove_session(id);
  close(found->second.fd);
  close(found->second.peer.pidfd);
  clients_.erase(found);
}

bool Daemon::serve_one(SessionId id, Client* client) {
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    Request request;
    const ssize_t size =
        recv(client->fd, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC | MSG_NOSIGNAL);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size != static_cast<ssize_t>(sizeof request) || request.magic != kProtocolMagic ||
        request.version != kProtocolVersion) {
      return false;
    }
    Reply reply;
    memset(&reply, 0, sizeof reply);
    reply.magic = kProtocolMagic;
    reply.version = kProtocolVersion;
    reply.op = request.op;
    reply.sequence = request.sequence;
    reply.device_count = static_cast<uint32_t>(accounting_->devices().size());
    if (!client->greeted) {
      if (request.op != Op::kHello || request.flags > static_cast<uint32_t>(Role::kMpsServer)) {
        return false;
      }
      client->greeted = true;
      accounting_->add_session(id, client->peer.pid, static_cast<Role>(request.flags));
    } else {
      reply.status = handle(id, *client, request, &reply);
    }
    if (!send_message(client->fd, &reply, sizeof reply, MSG_DONTWAIT)) return false;
  }
  return true;
}

Status Daemon::handle(SessionId id, const Client& client, const Request& request, Reply* reply) {
  accounting_->report_work(request.device, request.work_us, now_us());
  switch (request.op) {
    case Op::kHello:
      return Status::kBadRequest;
    case Op::kGetDevice:
      if (request.device >= accounting_->devices().size()) return Status::kNoSuchDevice;
      reply->device = accounting_->devices()[request.device];
      return Status::kOk;
    case Op::kGetState:
      return accounting_->state(request.device, now_us(), &reply->state);
    case Op::kListProcesses: {
      std::vector<ProcessEntry> rows;
      const Status status =
          accounting_->processes(request.device, request.arg, &rows, &reply->value);
      reply->count = static_cast<uint32_t>(std::min<size_t>(rows.size(), kProcessesPerReply));
      std::copy_n(rows.begin(), reply->count, reply->processes);
      return status;
    }
    case Op::kSetComputeMode:
      if (!is_as_privileged_as_self(client.peer)) return Status::kNotPermitted;
      return accounting_->set_compute_mode(request.device, request.arg);
    case Op::kContextCreate:
      return accounting_->create_context(id, request.device, (request.flags & kViaMps) != 0);
    case Op::kContextDestroy:
      return accounting_->destroy_context(id, request.device);
    case Op::kAllocate:
      return accounting_->allocate(id, request.device, request.arg, &reply->value);
    case Op::kFree:
      return accounting_->release(id, request.arg);
    case Op::kClientMemory:
      return accounting_->client_memory(id, request.device, &reply->value, &reply->value2);
    case Op::kCheck:
      return accounting_->check(id);
    case Op::kMpsAdmit: {
      Accounting::Limits limits;
      std::copy_n(request.limits, kMaxDevices, limits.begin());
      return accounting_->admit(id, request.pid, limits);
    }
    case Op::kMpsRelease:
      return accounting_->revoke(id, request.pid);
    case Op::kMpsTerminate:
      return accounting_->terminate(id, request.pid);
  }
  return Status::kUnsupported;
}

}  // namespace gpusim
