#include "adapters/process_lock.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;
using base::UniqueFd;

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

base::Error lock_error(const std::string& path, int error) {
  return {error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
          fmt::format("{}: {}", path, std::strerror(error))};
}

Result<UniqueFd> open_lock(const std::string& folder, int flags) {
  const std::string path = folder + "/lock";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (!file) return fail(lock_error(path, errno));
  return file;
}

}  // namespace

Result<UniqueFd> take_process_lock(const std::string& folder) {
  Result<UniqueFd> file = open_lock(folder, 0);
  if (!file) return file;
  struct flock lock = whole_file();
  if (::fcntl(file->get(), F_OFD_SETLK, &lock) == 0) return file;
  if (errno == EAGAIN || errno == EACCES) {
    return fail(ErrorCode::kConflict, folder + ": is running, or being started");
  }
  return fail(lock_error(folder + "/lock", errno));
}

Result<bool> is_process_locked(const std::string& folder) {
  const Result<UniqueFd> file = open_lock(folder, 0);
  if (!file) return fail(file.error());
  struct flock lock = whole_file();
  if (::fcntl(file->get(), F_OFD_GETLK, &lock) != 0) {
    return fail(lock_error(folder + "/lock", errno));
  }
  return lock.l_type != F_UNLCK;
}

base::Status make_process_lock(const std::string& folder) {
  const Result<UniqueFd> file = open_lock(folder, O_CREAT);
  return file ? base::Status{} : fail(file.error());
}

}  // namespace cotenant::adapters
