#include "adapters/mps_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/unique_fd.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

// Files of ours are far smaller; what is larger is not ours.
constexpr std::size_t kSmallFileBytes = 64 * 1024;
constexpr std::size_t kLogTailBytes = 4096;

base::Status io_error(const std::string& path, int reason) {
  return base::fail(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(reason)));
}

std::optional<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kSmallFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

template <class Integer>
std::optional<Integer> parse_integer(std::string_view text) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One folder of the path: made 0755 when missing (whatever the umask), else looked at.
base::Status ensure_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) {
    return ::chmod(path.c_str(), 0755) == 0 ? base::Status{} : io_error(path, errno);
  }
  if (errno != EEXIST) return io_error(path, errno);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return io_error(path, errno);
  if (!S_ISDIR(status.st_mode)) return io_error(path, ENOTDIR);
  if ((status.st_mode & S_IXOTH) == 0) {
    return base::fail(
        ErrorCode::kIo,
        fmt::format("{} (mode {:04o}) cannot be passed by other users, but the MPS server "
                    "and containers must reach the folder below it: chmod o+x {}, or "
                    "choose another --run-dir",
                    path, status.st_mode & 07777, path));
  }
  return {};
}

base::Status ensure_path(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (auto status = ensure_folder(path.substr(0, end)); !status) return status;
    if (end == std::string::npos) return {};
  }
}

void set_aside_large_log(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && status.st_size > kMpsLogBytes) {
    std::error_code ignored;  // at worst the log goes on growing until the next start
    std::filesystem::rename(path, path + ".1", ignored);
  }
}

// "<name> <pid> <start time> <boot id> <command line>"
std::string format_process(std::string_view name, const ProcessIdentity& process) {
  return fmt::format("{} {} {} {} {}\n", name, process.pid, process.start_time_ticks,
                     process.boot_id, process.command);
}

// Takes the text up to the next `separator`, which is consumed.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::optional<ProcessIdentity> parse_process(std::string_view text) {
  const auto pid = parse_integer<pid_t>(take(text, ' '));
  const auto start_time_ticks = parse_integer<std::uint64_t>(take(text, ' '));
  const std::string_view boot_id = take(text, ' ');
  if (!pid || *pid <= 0 || !start_time_ticks || boot_id.empty()) return std::nullopt;
  return ProcessIdentity{*pid, *start_time_ticks, std::string(boot_id), std::string(text)};
}

}  // namespace

std::string format_mps_record(const MpsRecord& record) {
  std::string text =
      fmt::format("gpu {}\n", record.gpu_uuid) + format_process("daemon", record.daemon);
  if (record.server_pid != 0) text += fmt::format("server-pid {}\n", record.server_pid);
  if (record.server) text += format_process("server", *record.server);
  return text + "end\n";
}

std::optional<MpsRecord> parse_mps_record(std::string_view text) {
  MpsRecord record;
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    const std::string_view name = take(line, ' ');
    if (name == "gpu") {
      record.gpu_uuid = line;
    } else if (name == "daemon") {
      const auto daemon = parse_process(line);
      if (!daemon) return std::nullopt;
      record.daemon = *daemon;
    } else if (name == "server-pid") {
      const auto pid = parse_integer<pid_t>(line);
      if (!pid || *pid <= 0) return std::nullopt;
      record.server_pid = *pid;
    } else if (name == "server") {
      record.server = parse_process(line);
      if (!record.server) return std::nullopt;
    } else if (name == "end") {
      if (!is_gpu_uuid(record.gpu_uuid) || record.daemon.pid == 0) return std::nullopt;
      return record;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;  // cut short
}

bool is_gpu_uuid(std::string_view text) {
  constexpr std::string_view kShape = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::ranges::equal(text, kShape, [](char c, char shape) {
    if (shape != 'x') return c == shape;
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

std::string mps_short_id(std::string_view gpu_uuid, int attempt) {
  if (attempt == 0) return std::string(gpu_uuid.substr(std::strlen("GPU-"), 8));
  // FNV-1a: any spread will do, but it must be the same after a restart.
  std::uint32_t hash = 2166136261U;
  for (const char c : fmt::format("{}#{}", gpu_uuid, attempt)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return fmt::format("{:08x}", hash);
}

base::Status MpsDirectory::prepare() const {
  if (!path_.starts_with('/')) {
    return base::fail(ErrorCode::kIo,
                      fmt::format("{}: the path is not absolute; give --run-dir as one", path_));
  }
  if (pipe().size() > kMpsPipePathChars) {
    return base::fail(ErrorCode::kIo,
                      fmt::format("{}: the path has {} characters, but the sockets of "
                                  "MPS allow {}: choose a shorter --run-dir",
                                  pipe(), pipe().size(), kMpsPipePathChars));
  }
  for (const std::string& path : {pipe(), log()}) {
    if (auto status = ensure_path(path); !status) return status;
  }
  for (const char* name : {"/control.log", "/server.log"}) set_aside_large_log(log() + name);
  return {};
}

base::Status MpsDirectory::remove_pipe() const {
  std::error_code error;
  std::filesystem::remove_all(pipe(), error);
  if (error) return base::fail(ErrorCode::kIo, fmt::format("{}: {}", pipe(), error.message()));
  return {};
}

std::optional<MpsRecord> MpsDirectory::read_record() const {
  const std::optional<std::string> text = read_small_file(path_ + "/daemon");
  return text ? parse_mps_record(*text) : std::nullopt;
}

// Written aside and renamed, so that a crash leaves the old record or the new one. Not synced: it
// need not survive a crash of the machine, which ends the daemon as well.
base::Status MpsDirectory::write_record(const MpsRecord& record) const {
  const std::string path = path_ + "/daemon";
  const std::string aside = path + ".new";
  const std::string text = format_mps_record(record);
  base::UniqueFd file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) return io_error(aside, errno);
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size()))
    return io_error(aside, written < 0 ? errno : ENOSPC);
  if (::rename(aside.c_str(), path.c_str()) != 0) return io_error(path, errno);
  return {};
}

void MpsDirectory::remove_record() const {
  ::unlink((path_ + "/daemon").c_str());
}

std::optional<pid_t> MpsDirectory::read_pid_file() const {
  std::optional<std::string> text = read_small_file(pipe() + "/nvidia-cuda-mps-control.pid");
  if (!text) return std::nullopt;
  while (!text->empty() && std::strchr(" \r\n", text->back()) != nullptr) text->pop_back();
  const auto pid = parse_integer<pid_t>(*text);
  return pid && *pid > 0 ? pid : std::nullopt;
}

std::string MpsDirectory::last_log_line(const std::string& name) const {
  std::ifstream file(log() + "/" + name, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<std::streamoff>(file.tellg());
  file.seekg(std::max<std::streamoff>(0, size - static_cast<std::streamoff>(kLogTailBytes)));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t line_start = text.rfind('\n');
  return line_start == std::string::npos ? text : text.substr(line_start + 1);
}

}  // namespace cotenant::adapters
