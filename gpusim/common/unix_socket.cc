#include "common/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpusim {
namespace {

// Fills the address. *folder_fd stays open as long as the address is in use (-1: not needed).
bool make_address(const char* folder, const char* name, sockaddr_un* address, int* folder_fd) {
  *folder_fd = -1;
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  int length = snprintf(address->sun_path, sizeof address->sun_path, "%s/%s", folder, name);
  if (length > 0 && static_cast<size_t>(length) < sizeof address->sun_path) return true;
  *folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (*folder_fd < 0) return false;
  length = snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", *folder_fd,
                    name);
  if (length > 0 && static_cast<size_t>(length) < sizeof address->sun_path) return true;
  close(*folder_fd);
  errno = ENAMETOOLONG;
  return false;
}

int close_keeping_errno(int fd) {
  const int saved = errno;
  if (fd >= 0) close(fd);
  errno = saved;
  return -1;
}

}  // namespace

int connect_seqpacket(const char* folder, const char* name, int timeout_s) {
  sockaddr_un address;
  int folder_fd = -1;
  if (!make_address(folder, name, &address, &folder_fd)) return -1;
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return close_keeping_errno(folder_fd);
  timeval timeout = {};
  timeout.tv_sec = timeout_s;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  const bool connected =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close_keeping_errno(folder_fd);
  return connected ? fd : close_keeping_errno(fd);
}

int listen_seqpacket(const char* folder, const char* name, unsigned mode, int backlog) {
  sockaddr_un address;
  int folder_fd = -1;
  if (!make_address(folder, name, &address, &folder_fd)) return -1;
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return close_keeping_errno(folder_fd);
  const bool listening =
      bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      chmod(address.sun_path, mode) == 0 && listen(fd, backlog) == 0;
  close_keeping_errno(folder_fd);
  return listening ? fd : close_keeping_errno(fd);
}

bool send_message(int fd, const void* message, size_t size, int flags) {
  ssize_t sent;
  do {
    sent = send(fd, message, size, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

bool receive_message(int fd, void* message, size_t size, int flags) {
  ssize_t received;
  do {
    // MSG_TRUNC gives the true length, so that a longer message is not taken for a fitting one.
    received = recv(fd, message, size, flags | MSG_TRUNC);
  } while (received < 0 && errno == EINTR);
  return received == static_cast<ssize_t>(size);
}

}  // namespace gpusim
