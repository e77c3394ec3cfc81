#include "log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

namespace shim {
namespace {

constexpr const char* kNames[kStreams] = {"stdout", "stderr"};

size_t write_prefix(int stream, bool complete, char* out, size_t size) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  const int length =
      snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d.%09ldZ %s %c ", parts.tm_year + 1900,
               parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
               now.tv_nsec, kNames[stream], complete ? 'F' : 'P');
  return length > 0 ? static_cast<size_t>(length) : 0;
}

}  // namespace

void LogFile::path(int number, char* out, size_t size) const {
  if (number == 0) {
    snprintf(out, size, "%s/log", folder_);
  } else {
    snprintf(out, size, "%s/log.%d", folder_, number);
  }
}

void LogFile::open_in(const char* folder, long bytes_max, int files_max) {
  folder_ = folder;
  bytes_max_ = bytes_max;
  files_max_ = files_max;
  char name[4096];
  path(0, name, sizeof name);
  file_ = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  struct stat info {};
  bytes_ = file_ >= 0 && fstat(file_, &info) == 0 ? info.st_size : 0;
}

void LogFile::rotate() {
  char from[4096];
  char to[4096];
  if (file_ >= 0) close(file_);
  for (int number = files_max_ - 1; number > 0; --number) {
    path(number - 1, from, sizeof from);
    path(number, to, sizeof to);
    rename(from, to);
  }
  path(0, from, sizeof from);
  file_ = open(from, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bytes_ = 0;
}

void LogFile::write_line(int stream, bool complete) {
  char prefix[96];
  const size_t prefix_size = write_prefix(stream, complete, prefix, sizeof prefix);
  const size_t size = prefix_size + sizes_[stream] + 1;
  if (bytes_ > 0 && bytes_ + static_cast<long>(size) > bytes_max_) rotate();
  char end[] = "\n";
  const iovec parts[] = {{prefix, prefix_size}, {lines_[stream], sizes_[stream]}, {end, 1}};
  const ssize_t written = file_ >= 0 ? writev(file_, parts, 3) : -1;
  if (written > 0) bytes_ += written;
  sizes_[stream] = 0;
}

void LogFile::append(int stream, const char* data, size_t size) {
  while (size > 0) {
    const char* newline = static_cast<const char*>(memchr(data, '\n', size));
    size_t count = newline == nullptr ? size : static_cast<size_t>(newline - data);
    const size_t room = kLineBytesMax - sizes_[stream];
    const bool complete = newline != nullptr && count <= room;
    if (count > room) count = room;
    memcpy(lines_[stream] + sizes_[stream], data, count);
    sizes_[stream] += count;
    data += count;
    size -= count;
    if (complete) {
      ++data;
      --size;
      write_line(stream, true);
    } else if (sizes_[stream] == kLineBytesMax && size > 0) {
      write_line(stream, false);
    }
  }
}

void LogFile::finish() {
  for (int stream = 0; stream < kStreams; ++stream) {
    if (sizes_[stream] > 0) write_line(stream, false);
  }
}

}  // namespace shim
