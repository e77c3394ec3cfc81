#include "mps/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

namespace gpusim::mps {

Log::~Log() {
  if (fd_ >= 0) close(fd_);
}

bool Log::open(const std::string& path, std::string_view tag) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  tag_ = tag;
  return fd_ >= 0;
}

void Log::line(std::string_view text) {
  if (fd_ < 0) return;
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local = {};
  localtime_r(&now.tv_sec, &local);
  const std::string whole =
      fmt::format("[{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03} {} {:5}] {}\n", local.tm_year + 1900,
                  local.tm_mon + 1, local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec,
                  now.tv_nsec / 1000000, tag_, getpid(), text);
  const ssize_t ignored = write(fd_, whole.data(), whole.size());
  (void)ignored;
}

}  // namespace gpusim::mps
