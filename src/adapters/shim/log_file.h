// The program's output, in files of a bounded size: `log`, and before it `log.1`, `log.2`, ...
//
// Lines are those of Kubernetes' container runtime interface: "<RFC 3339 time> stdout|stderr F|P
// <text>", P where the line goes on in the next one. What cannot be written (a full disk) is dropped:
// a program must not stand still for its log.
#pragma once

#include <stddef.h>

namespace shim {

constexpr int kStreams = 2;
constexpr size_t kLineBytesMax = 16 * 1024;

class LogFile {
 public:
  void open_in(const char* folder, long bytes_max, int files_max);
  // stream: 0 stdout, 1 stderr.
  void append(int stream, const char* data, size_t size);
  // What stands without an end of line.
  void finish();

 private:
  void write_line(int stream, bool complete);
  void rotate();
  void path(int number, char* out, size_t size) const;

  const char* folder_ = nullptr;
  long bytes_max_ = 0;
  int files_max_ = 1;
  int file_ = -1;
  long bytes_ = 0;
  char lines_[kStreams][kLineBytesMax];
  size_t sizes_[kStreams] = {0, 0};
};

}  // namespace shim
