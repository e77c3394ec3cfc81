// Who is at the other end of a unix socket, and when does that process die.
//
// The connection alone cannot tell: a forked child that inherited the socket keeps it open after
// the client is dead. Hence a pidfd: SO_PEERPIDFD (Linux 6.5) names the very process that
// connected; older kernels have only the pid, so the process is opened by pid and must have the
// same start time before and after, lest a pid that was reused in between pass for it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpusim {

struct Peer {
  pid_t pid = 0;  // in the caller's PID namespace; 0: not visible from here
  uid_t uid = 0;
  gid_t gid = 0;
  int pidfd = -1;  // readable when the process is dead; owned by whoever holds the Peer
};

// False when the peer cannot be identified, or is already dead; then nothing is left open.
bool identify_peer(int socket_fd, Peer* peer);

// Also one whose process cannot be seen from here (pid 0); then without a pidfd where the kernel is
// older than Linux 6.5, so that only the connection tells of its end.
bool identify_peer_anywhere(int socket_fd, Peer* peer);

// pidfd_open by system call, as the wrapper is newer than most glibc. -1 with errno.
int open_pidfd(pid_t pid);

// Field 22 of /proc/<pid>/stat, in clock ticks since boot. 0: no such process.
uint64_t process_start_ticks(pid_t pid);

// May the peer do what needs root on the machine (the compute mode)? It must have the user id of
// this process or 0, and CAP_SYS_ADMIN if this process has it: root in a container does not pass.
bool is_as_privileged_as_self(const Peer& peer);

}  // namespace gpusim
