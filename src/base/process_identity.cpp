#include "base/process_identity.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/unique_fd.h"

namespace cotenant::base {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Stat {
  char state = 'X';
  pid_t parent = 0;
  std::uint64_t start_time_ticks = 0;
};

// proc(5): pid (comm) state ppid ... field 22 starttime. The name may hold blanks and parentheses,
// so the fields are counted from the last ')'.
std::optional<Stat> read_stat(pid_t pid) {
  const std::string text = read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Stat stat;
  fields >> stat.state >> stat.parent;
  std::string skipped;
  for (int field = 5; field < 22; ++field) fields >> skipped;
  fields >> stat.start_time_ticks;
  if (!fields) return std::nullopt;
  return stat;
}

bool is_dead(char state) {
  return state == 'Z' || state == 'X';
}

// A handle on exactly this process: once it is open the pid cannot change its owner unnoticed.
UniqueFd open_process(const ProcessIdentity& identity) {
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, identity.pid, 0)));
  if (process && !is_alive(identity)) process.reset();
  return process;
}

bool wait_for_exit(int process, std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  pollfd polled{process, POLLIN, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
    const int ready = ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

std::string current_boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id");
  std::erase(id, '\n');
  return id;
}

std::optional<ProcessIdentity> identify_process(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  const std::optional<Stat> before = read_stat(pid);
  if (!before || is_dead(before->state)) return std::nullopt;
  std::string command = read_file(fmt::format("/proc/{}/cmdline", pid));
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::ranges::replace_if(
      command, [](char c) { return c == '\0' || c == '\n'; }, ' ');
  // Still the same process: the command line was its own.
  const std::optional<Stat> after = read_stat(pid);
  if (!after || is_dead(after->state) || after->start_time_ticks != before->start_time_ticks) {
    return std::nullopt;
  }
  return ProcessIdentity{pid, after->start_time_ticks, current_boot_id(), std::move(command)};
}

bool is_alive(const ProcessIdentity& identity) {
  return identify_process(identity.pid) == std::optional(identity);
}

std::optional<pid_t> parent_of(pid_t pid) {
  const std::optional<Stat> stat = read_stat(pid);
  if (!stat) return std::nullopt;
  return stat->parent;
}

std::optional<std::string> start_environment(pid_t pid, const std::string& name) {
  std::istringstream entries(read_file(fmt::format("/proc/{}/environ", pid)));
  const std::string prefix = name + "=";
  for (std::string entry; std::getline(entries, entry, '\0');) {
    if (entry.starts_with(prefix)) return entry.substr(prefix.size());
  }
  return std::nullopt;
}

bool wait_until_gone(const ProcessIdentity& identity, std::chrono::milliseconds timeout) {
  const UniqueFd process = open_process(identity);
  return !process || wait_for_exit(process.get(), timeout);
}

bool end_process(const ProcessIdentity& identity, std::chrono::milliseconds grace) {
  const UniqueFd process = open_process(identity);
  if (!process) return !is_alive(identity);
  for (const int signal : {SIGTERM, SIGKILL}) {
    ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
    if (wait_for_exit(process.get(), grace)) return true;
  }
  return false;
}

}  // namespace cotenant::base
