#include "cli/pid_file.h"

#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <fstream>

namespace cotenant::cli {
base::Status write_pid_file(const std::string& path, pid_t pid) {
  const auto identity = base::identify_process(pid);
  std::ofstream file(path, std::ios::trunc);
  if (identity) {
    file << identity->pid << " " << identity->start_time_ticks << " " << identity->boot_id << "\n";
  }
  file.close();
  if (identity && file) return {};
  return base::fail(
      base::ErrorCode::kIo,
      fmt::format("{}: cannot be written; is the disk full or read-only? Choose another "
                  "folder with --run-dir",
                  path));
}

std::optional<base::ProcessIdentity> read_pid_file(const std::string& path) {
  std::ifstream file(path);
  base::ProcessIdentity recorded;
  if (!(file >> recorded.pid >> recorded.start_time_ticks >> recorded.boot_id)) return std::nullopt;
  const auto present = base::identify_process(recorded.pid);
  if (!present || present->start_time_ticks != recorded.start_time_ticks ||
      present->boot_id != recorded.boot_id) {
    return std::nullopt;
  }
  return present;
}

base::Status end_recorded_process(const base::ProcessIdentity& process, const std::string& what,
                                  std::chrono::milliseconds grace) {
  if (::kill(process.pid, 0) != 0 && errno == EPERM) {
    return base::fail(
        base::ErrorCode::kAccessDenied,
        fmt::format("{}, pid {}, belongs to another user; run as root", what, process.pid));
  }
  if (base::end_process(process, grace)) return {};
  return base::fail(
      base::ErrorCode::kTimeout,
      fmt::format("{}, pid {}, has not ended {} ms after SIGKILL; see what it waits for "
                  "with `ps -o wchan= -p {}`, then run `cotenant down` again",
                  what, process.pid, grace.count(), process.pid));
}

}  // namespace cotenant::cli
