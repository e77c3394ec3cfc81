#include "descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace shim {
namespace {

// proc(5), stat: pid (name) state ppid; the name may hold blanks and parentheses.
pid_t parent_of(const char* pid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[512];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return -1;
  text[size] = '\0';
  const char* name_end = strrchr(text, ')');
  if (name_end == nullptr || strlen(name_end) < 5) return -1;
  return static_cast<pid_t>(strtol(name_end + 4, nullptr, 10));
}

}  // namespace

void signal_children(int signal, pid_t except) {
  DIR* processes = opendir("/proc");
  if (processes == nullptr) return;
  const pid_t self = getpid();
  for (const dirent* entry = readdir(processes); entry != nullptr; entry = readdir(processes)) {
    const pid_t pid = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    // Our own children, not yet waited for: the pid is surely theirs.
    if (pid > 0 && pid != except && parent_of(entry->d_name) == self) kill(pid, signal);
  }
  closedir(processes);
}

}  // namespace shim
