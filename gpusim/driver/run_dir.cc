#include "driver/run_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "driver/cdi.h"

namespace gpusim {
namespace {

namespace fs = std::filesystem;

std::string failed(const std::string& what, const std::string& path) {
  return fmt::format("cannot {} {}: {}", what, path, strerror(errno));
}

// Whole or not at all: readers of the folder never see a half-written file.
std::optional<std::string> write_file(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return failed("write", temporary);
  const bool written =
      ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
      fchmod(fd, 0644) == 0;
  std::optional<std::string> error;
  if (!written) error = failed("write", temporary);
  ::close(fd);
  if (!error && rename(temporary.c_str(), path.c_str()) != 0) error = failed("write", path);
  if (error) unlink(temporary.c_str());
  return error;
}

std::optional<std::string> make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fmt::format("cannot create {}: {}", path, error.message());
  // Containers of any user id must get through, whatever the umask.
  if (chmod(path.c_str(), 0755) != 0) return failed("set the mode of", path);
  return std::nullopt;
}

}  // namespace

RunDir::~RunDir() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

std::optional<std::string> RunDir::open(const std::string& folder, RunDir* out) {
  if (auto error = make_folder(folder)) return error;
  std::error_code code;
  out->path_ = fs::canonical(folder, code).string();
  if (code) return fmt::format("cannot resolve {}: {}", folder, code.message());
  const std::string lock_path = out->path_ + "/gpusimd.lock";
  out->lock_fd_ = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (out->lock_fd_ < 0) return failed("open", lock_path);
  if (flock(out->lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock", lock_path);
    return fmt::format("another gpusimd already serves {}", out->path_);
  }
  out->clear();
  for (const char* sub_folder : {kSocketFolder, kDevicesFolder, "cdi"}) {
    if (auto error = make_folder(fmt::format("{}/{}", out->path_, sub_folder))) return error;
  }
  return std::nullopt;
}

std::string RunDir::socket_folder() const {
  return fmt::format("{}/{}", path_, kSocketFolder);
}

std::optional<std::string> RunDir::publish_devices(const std::vector<DeviceInfo>& devices,
                                                   const std::string& library_folder) {
  for (const DeviceInfo& device : devices) {
    const std::string path = fmt::format("{}/{}/{}", path_, kDevicesFolder, device.device_file);
    const std::string content = fmt::format("minor: {}\nuuid: {}\nmodel: {}\nsimulated: true\n",
                                            device.minor, device.uuid, device.model);
    if (auto error = write_file(path, content)) return error;
  }
  return write_file(path_ + "/cdi/nvidia.yaml", cdi_spec(devices, path_, library_folder));
}

std::optional<std::string> RunDir::publish_ready() {
  return write_file(path_ + "/gpusimd.pid", fmt::format("{}\n", getpid()));
}

void RunDir::clear() {
  unlink((path_ + "/gpusimd.pid").c_str());
  unlink(fmt::format("{}/{}", socket_folder(), kSocketName).c_str());
  unlink((path_ + "/cdi/nvidia.yaml").c_str());
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator(fmt::format("{}/{}", path_, kDevicesFolder), ignored)) {
    if (entry.path().filename().string().starts_with("nvidia")) fs::remove(entry.path(), ignored);
  }
}

void RunDir::append_kernel_log(const std::string& line) {
  constexpr off_t kMostBytes = 1024 * 1024;
  const std::string path = path_ + "/kernel.log";
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && status.st_size > kMostBytes) {
    rename(path.c_str(), (path + ".1").c_str());
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const std::string text = line + "\n";
  if (::write(fd, text.data(), text.size()) < 0) {
    // Lost, and gpusimd goes on.
  }
  ::close(fd);
}

}  // namespace gpusim
