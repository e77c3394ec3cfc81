#include "base/private_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace cotenant::base {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1024} * 1024;

tl::unexpected<Error> file_error(const std::string& path, std::string_view doing, int error) {
  return fail(ErrorCode::kIo,
              fmt::format("{}: cannot be {}: {}", path, doing, std::strerror(error)));
}

Status check_privacy(const std::string& path, const struct stat& file) {
  if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: others may read or write it (mode {:04o}), and it holds secrets; "
                            "chmod 600 it, and make new ones if somebody may have read it",
                            path, file.st_mode & 07777));
  }
  if (file.st_uid != ::geteuid()) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: belongs to user {}, not to user {} who runs this; chown it", path,
                            file.st_uid, ::geteuid()));
  }
  return {};
}

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return file_error(path, "written", errno);
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  if (::fsync(fd) != 0) return file_error(path, "synced", errno);
  return {};
}

}  // namespace

Result<std::optional<std::string>> read_private_file(const std::string& path, Privacy privacy) {
  // Nonblocking, so that a pipe of that name does not hold us up.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return file_error(path, "read", errno);
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) return file_error(path, "read", errno);
  if (!S_ISREG(file.st_mode)) {
    return fail(ErrorCode::kIo, fmt::format("{}: is not a plain file", path));
  }
  if (privacy == Privacy::kOwner) {
    if (auto status = check_privacy(path, file); !status) return fail(status.error());
  }
  std::string text;
  std::array<char, 16384> piece{};
  for (;;) {
    const ssize_t size = ::read(fd.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return file_error(path, "read", errno);
    if (size == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(size));
    if (text.size() > kFileBytesMax) {
      return fail(ErrorCode::kIo, fmt::format("{}: has more than {} bytes", path, kFileBytesMax));
    }
  }
}

Status write_private_file(const std::string& path, std::string_view text) {
  const std::string aside = path + ".new";
  ::unlink(aside.c_str());  // of a run that ended in between; never follow what lies there
  {
    const UniqueFd fd(
        ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return file_error(aside, "made", errno);
    if (auto status = write_all(fd.get(), text, aside); !status) return status;
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) return file_error(path, "replaced", errno);
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return file_error(folder, "synced", errno);
  return {};
}

}  // namespace cotenant::base
