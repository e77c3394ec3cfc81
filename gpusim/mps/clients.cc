// Connections on `control`: from the hello to the server, or to a refusal.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/text.h"
#include "common/unix_socket.h"
#include "mps/control_daemon.h"

namespace gpusim::mps {
namespace {

constexpr size_t kMaxWaiting = 256;

// Which SM partition the client chose, and on which of the server's devices it needs one: on all
// under -S, under v3 on those that are divided. What names no partition is as if nothing was named.
void choose_partition(const SmPartitions& partitions, bool everywhere, const Server& server,
                      ChannelMessage* message) {
  const SmPartitions::Row* row = partitions.find(message->hello.sm_partition);
  for (size_t i = 0; i < server.uuids.size() && i < kMaxDevices; ++i) {
    const std::string& uuid = server.uuids[i];
    const bool is_divided = partitions.is_divided(uuid);
    if (is_divided || (everywhere && partitions.total_chunks(uuid) != 0)) {
      message->partitioned_devices |= uint64_t{1} << i;
    }
    if (row == nullptr || row->gpu != uuid) continue;
    message->partition_number = row->number;
    message->partition_ordinal = static_cast<uint32_t>(i);
    message->hundredths = partitions.hundredths(*row);
    message->percentage_rules = 1;
    copy_text(row->gpu + "/" + row->id, message->partition, sizeof message->partition);
  }
}

void close_waiting(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

}  // namespace

void ControlDaemon::accept_client(int listen_fd, const std::string& server,
                                  const std::string& space) {
  const int fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  state_.log.line("Accepting connection...");
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    close(fd);
    return;
  }
  if (state_.waiting.size() >= kMaxWaiting) {
    // Those that say nothing make room, oldest first; clients that are queued keep their place.
    const auto silent = std::find_if(state_.waiting.begin(), state_.waiting.end(),
                                     [](const Waiting& waiting) { return !waiting.greeted; });
    if (silent == state_.waiting.end()) {
      close(fd);
      return;
    }
    close_waiting(&silent->fd);
  }
  Waiting& waiting = state_.waiting.emplace_back();
  waiting.fd = fd;
  waiting.pid = credentials.pid;
  waiting.uid = credentials.uid;
  waiting.since_ms = now_ms();
  waiting.server = server;
  waiting.space = space;
}

void ControlDaemon::read_hello(Waiting* waiting) {
  if (waiting->fd < 0) return;
  if (!receive_message(waiting->fd, &waiting->hello, sizeof waiting->hello, MSG_DONTWAIT) ||
      waiting->hello.magic != kMpsMagic) {
    state_.log.line("User did not send valid credentials");
    close_waiting(&waiting->fd);
    return;
  }
  waiting->hello.visible_devices[kMaxEnvironmentText - 1] = '\0';
  waiting->hello.pinned_limit[kMaxEnvironmentText - 1] = '\0';
  waiting->hello.sm_partition[sizeof waiting->hello.sm_partition - 1] = '\0';
  waiting->greeted = true;
  const Server* server = state_.v3 ? state_.find_named(waiting->server) : state_.accepting_server();
  const bool exists = server != nullptr && server->state != ServerState::kInitializing &&
                      (state_.multiuser || server->uid == waiting->uid);
  state_.log.line(fmt::format(
      "NEW CLIENT {} from user {}: {}", waiting->pid, waiting->uid,
      exists ? "Server already exists" : "Server is not ready, push client to pending list"));
  place_client(waiting);
}

// Hands the client over, starts a server for it, or leaves it in the list.
void ControlDaemon::place_client(Waiting* waiting) {
  if (state_.quitting) {
    refuse(waiting, kMpsConnectionFailed);
    return;
  }
  // Only root can make a server for somebody else.
  if (geteuid() != 0 && waiting->uid != geteuid()) {
    refuse(waiting, kMpsNotPermitted);
    return;
  }
  if (state_.v3) {
    place_v3_client(waiting);
    return;
  }
  Server* server = state_.accepting_server();
  if (server != nullptr && (state_.multiuser || server->uid == waiting->uid)) {
    if (server->state == ServerState::kActive) hand_over(server, waiting);
    // For whichever GPU the client comes: all of the server's are closed while it is in FAULT.
    if (server->state == ServerState::kFault) refuse(waiting, kMpsServerNotReady);
    return;
  }
  if (server != nullptr) {
    // Another user's server: it is replaced when the last of its clients has gone.
    const bool idle = server->clients.empty() && server->in_flight == 0;
    if (server->state != ServerState::kInitializing && idle) {
      server->ending = true;
      end_idle_servers(false);
    }
    return;
  }
  if (!state_.servers.empty()) return;  // one that ends must be gone first: one server at a time
  if (start_server(state_.multiuser ? geteuid() : waiting->uid) == nullptr) {
    refuse(waiting, kMpsConnectionFailed);
  }
}

void ControlDaemon::retry_waiting() {
  for (Waiting& waiting : state_.waiting) {
    if (waiting.fd >= 0 && waiting.greeted) place_client(&waiting);
  }
  std::erase_if(state_.waiting, [](const Waiting& waiting) { return waiting.fd < 0; });
}

void ControlDaemon::drop_silent_clients() {
  for (Waiting& waiting : state_.waiting) {
    if (waiting.fd < 0 || waiting.greeted) continue;
    if (now_ms() - waiting.since_ms <= state_.settings.hello_timeout_ms) continue;
    state_.log.line("User did not send valid credentials");
    close_waiting(&waiting.fd);
  }
}

void ControlDaemon::hand_over(Server* server, Waiting* waiting) {
  auto message = std::make_unique<ChannelMessage>();
  message->kind = ChannelKind::kClient;
  message->pid = waiting->pid;
  message->uid = waiting->uid;
  message->hello = waiting->hello;
  const NamespaceSpec* space = find_spec(*server, waiting->space);
  put_defaults(space == nullptr ? server->defaults : space->defaults, message.get());
  message->percentage_rules = space != nullptr && space->has_percentage ? 1 : 0;
  copy_text(waiting->space, message->space, sizeof message->space);
  choose_partition(state_.static_partitions ? state_.partitions : server->partitions,
                   state_.static_partitions, *server, message.get());
  if (!send_message_with_fd(server->channel, message.get(), sizeof *message, waiting->fd,
                            MSG_DONTWAIT)) {
    refuse(waiting, kMpsConnectionFailed);
    return;
  }
  server->in_flight += 1;
  close_waiting(&waiting->fd);
}

void ControlDaemon::refuse(Waiting* waiting, int32_t result) {
  ClientWelcome welcome = {};
  welcome.magic = kMpsMagic;
  welcome.result = result;
  send_message(waiting->fd, &welcome, sizeof welcome, MSG_DONTWAIT);
  close_waiting(&waiting->fd);
}

}  // namespace gpusim::mps
