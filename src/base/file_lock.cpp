#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace cotenant::base {
namespace {

std::string holder(int fd) {
  std::array<char, 16> text{};
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  long pid = 0;
  if (count > 0) std::from_chars(text.data(), text.data() + count, pid);
  return pid > 0 ? fmt::format("process {}", pid) : "another process";
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) {
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return fail(ErrorCode::kConflict,
                  fmt::format("{} is locked by {}", path, holder(file.get())));
    }
    return fail(ErrorCode::kUnavailable, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  // The pid is a courtesy to whoever is refused; without it the lock works as well.
  const std::string pid = fmt::format("{}\n", ::getpid());
  [[maybe_unused]] const bool noted =
      ::ftruncate(file.get(), 0) == 0 && ::pwrite(file.get(), pid.data(), pid.size(), 0) > 0;
  return FileLock(std::move(file));
}

}  // namespace cotenant::base
