// control.log and server.log: "[2024-01-31 12:34:56.789 Control   123] text".
#pragma once

#include <string>
#include <string_view>

namespace gpusim::mps {

class Log {
 public:
  Log() = default;
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // False with errno.
  bool open(const std::string& path, std::string_view tag);
  void set_tag(std::string_view tag) { tag_ = tag; }
  // One write for one line, so that lines of two processes do not mix. A full disk loses lines, not
  // the daemon.
  void line(std::string_view text);

 private:
  int fd_ = -1;
  std::string tag_;
};

}  // namespace gpusim::mps
