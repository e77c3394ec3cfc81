#include "common/peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpusim {
namespace {

constexpr int kSoPeerPidfd = 77;
constexpr uint64_t kCapSysAdmin = uint64_t{1} << 21;

bool is_dead(int pidfd) {
  pollfd poll_entry = {pidfd, POLLIN, 0};
  return poll(&poll_entry, 1, 0) > 0;
}

bool has_sys_admin(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/status", static_cast<int>(pid));
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;
  char line[256];
  uint64_t effective = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    if (strncmp(line, "CapEff:", 7) == 0) effective = strtoull(line + 7, nullptr, 16);
  }
  fclose(file);
  return (effective & kCapSysAdmin) != 0;
}

}  // namespace

int open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  (void)pid;
  errno = ENOSYS;
  return -1;
#endif
}

uint64_t process_start_ticks(pid_t pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  FILE* file = fopen(path, "re");
  if (file == nullptr) return 0;
  char line[1024];
  const size_t length = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[length] = '\0';
  // The second field is the program's name in parentheses and may contain anything.
  const char* at = strrchr(line, ')');
  if (at == nullptr) return 0;
  ++at;
  for (int field = 3; field < 22; ++field) {
    at = strchr(at + 1, ' ');
    if (at == nullptr) return 0;
  }
  return strtoull(at, nullptr, 10);
}

bool identify_peer(int socket_fd, Peer* peer) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 ||
      credentials.pid <= 0) {
    return false;
  }
  peer->pid = credentials.pid;
  peer->uid = credentials.uid;
  peer->gid = credentials.gid;
  int pidfd = -1;
  size = sizeof pidfd;
  if (getsockopt(socket_fd, SOL_SOCKET, kSoPeerPidfd, &pidfd, &size) == 0) {
    peer->pidfd = pidfd;
  } else if (errno == ENOPROTOOPT || errno == EOPNOTSUPP) {
    const uint64_t before = process_start_ticks(credentials.pid);
    pidfd = open_pidfd(credentials.pid);
    if (pidfd < 0) return false;
    peer->pidfd = pidfd;
    if (before == 0 || process_start_ticks(credentials.pid) != before) {
      close(pidfd);
      peer->pidfd = -1;
      return false;
    }
  } else {
    return false;
  }
  if (is_dead(peer->pidfd)) {
    close(peer->pidfd);
    peer->pidfd = -1;
    return false;
  }
  return true;
}

bool identify_peer_anywhere(int socket_fd, Peer* peer) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return false;
  if (credentials.pid > 0) return identify_peer(socket_fd, peer);
  peer->pid = 0;
  peer->uid = credentials.uid;
  peer->gid = credentials.gid;
  int pidfd = -1;
  size = sizeof pidfd;
  if (getsockopt(socket_fd, SOL_SOCKET, kSoPeerPidfd, &pidfd, &size) != 0) return true;
  if (is_dead(pidfd)) {
    close(pidfd);
    return false;
  }
  peer->pidfd = pidfd;
  return true;
}

bool is_as_privileged_as_self(const Peer& peer) {
  if (peer.uid != 0 && peer.uid != geteuid()) return false;
  return !has_sys_admin(getpid()) || has_sys_admin(peer.pid);
}

}  // namespace gpusim
