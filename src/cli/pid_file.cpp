#include "cli/pid_file.h"

#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

namespace cotenant::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

bool wait_until_gone(const ProcessIdentity& process, std::chrono::milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  while (identify(process.pid) == process) {
    if (SteadyClock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace

std::optional<ProcessIdentity> identify(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // The second field, the command in brackets, may itself hold blanks and brackets.
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  std::istringstream rest(text.substr(end + 1));
  std::string field;
  std::string state;
  rest >> state;
  if (state == "Z" || state == "X") return std::nullopt;
  for (int i = 4; i <= 22 && rest; ++i) rest >> field;
  if (!rest) return std::nullopt;
  return ProcessIdentity{pid, std::stoull(field)};
}

base::Status write_pid_file(const std::string& path, pid_t pid) {
  const auto identity = identify(pid);
  std::ofstream file(path, std::ios::trunc);
  if (identity) file << identity->pid << " " << identity->start_ticks << "\n";
  file.close();
  if (identity && file) return {};
  return base::fail(base::ErrorCode::kIo, path + ": cannot be written");
}

std::optional<ProcessIdentity> read_pid_file(const std::string& path) {
  std::ifstream file(path);
  ProcessIdentity recorded;
  if (!(file >> recorded.pid >> recorded.start_ticks)) return std::nullopt;
  if (identify(recorded.pid) != recorded) return std::nullopt;
  return recorded;
}

bool end_process(const ProcessIdentity& process, std::chrono::milliseconds grace) {
  if (identify(process.pid) != process) return true;
  ::kill(process.pid, SIGTERM);
  if (wait_until_gone(process, grace)) return true;
  ::kill(process.pid, SIGKILL);
  return wait_until_gone(process, std::chrono::seconds(5));
}

}  // namespace cotenant::cli
