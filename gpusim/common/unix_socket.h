// Unix SOCK_SEQPACKET sockets, also below folders whose path is longer than sun_path (108 bytes):
// then the address goes through /proc/self/fd. All descriptors are close-on-exec.
#pragma once

#include <cstddef>

namespace gpusim {

// Connects to folder/name. A descriptor, or -1 with errno. Sends and receives of the descriptor end
// after timeout_s seconds, so that a stopped peer cannot hold its caller for ever.
int connect_seqpacket(const char* folder, const char* name, int timeout_s);

// Binds and listens at folder/name, which must not exist; non-blocking. -1 with errno.
int listen_seqpacket(const char* folder, const char* name, unsigned mode, int backlog);

// One message. sizes must agree exactly. False on anything else.
bool send_message(int fd, const void* message, size_t size, int flags = 0);
bool receive_message(int fd, void* message, size_t size, int flags = 0);

// The same with a descriptor alongside (SCM_RIGHTS). The receiver's *passed is -1 when none came;
// else it is the caller's, whatever the return value.
bool send_message_with_fd(int fd, const void* message, size_t size, int passed, int flags = 0);
bool receive_message_with_fd(int fd, void* message, size_t size, int* passed);

}  // namespace gpusim
