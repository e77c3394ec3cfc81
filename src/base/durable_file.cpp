#include "base/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/unique_fd.h"

namespace cotenant::base {
namespace {

auto file_error(std::string_view doing, const std::string& path, int error) {
  return fail(ErrorCode::kIo, fmt::format("{} {}: {}", doing, path, std::strerror(error)));
}

Status write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(fd) != 0) return file_error("sync", path, errno);
  return {};
}

Status sync_folder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return file_error("open folder", folder, errno);
  if (::fsync(fd.get()) != 0) return file_error("sync folder", folder, errno);
  return {};
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new";
  {
    const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd) return file_error("open", temporary, errno);
    if (Status written = write_all(fd.get(), text, temporary); !written) return written;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return file_error("replace", path, errno);
  }
  const std::size_t slash = path.rfind('/');
  return sync_folder(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

}  // namespace cotenant::base
