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

bool send_message_with_fd(int fd, const void* message, size_t size, int passed, int flags) {
  iovec part = {const_cast<void*>(message), size};
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
  memcpy(CMSG_DATA(attached), &passed, sizeof passed);
  ssize_t sent;
  do {
    sent = sendmsg(fd, &header, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(size);
}

bool receive_message_with_fd(int fd, void* message, size_t size, int* passed) {
  *passed = -1;
  iovec part = {message, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t received;
  do {
    received = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return false;
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS) {
      memcpy(passed, CMSG_DATA(at), sizeof *passed);
    }
  }
  return received == static_cast<ssize_t>(size) && (header.msg_flags & MSG_TRUNC) == 0;
}

}  // namespace gpusim
