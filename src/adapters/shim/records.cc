#include "records.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace shim {

int64_t wall_clock_ms() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

bool write_record(const char* folder, const char* name, const char* text) {
  char aside[64];
  snprintf(aside, sizeof aside, "%s.new", name);
  const int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  const int file = openat(directory, aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const size_t size = strlen(text);
  bool good = file >= 0 && write(file, text, size) == static_cast<ssize_t>(size);
  good = good && fsync(file) == 0;
  if (file >= 0) close(file);
  good = good && renameat(directory, aside, directory, name) == 0 && fsync(directory) == 0;
  close(directory);
  return good;
}

void remove_record(const char* folder, const char* name) {
  const int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  unlinkat(directory, name, 0);
  close(directory);
}

void touch(const char* folder) {
  utimensat(AT_FDCWD, folder, nullptr, 0);
}

}  // namespace shim
