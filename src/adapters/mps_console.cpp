#include "adapters/mps_console.h"

#include <fmt/format.h>

#include <charconv>
#include <thread>

#include "adapters/child_process.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kQuotedChars = 200;

constexpr int kAttempts = 4;
constexpr std::chrono::milliseconds kFirstPause{15};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Somebody else's text for a message of ours: one line, not endless.
std::string quoted(std::string_view text) {
  const std::string_view whole = trimmed(text);
  return fmt::format("\"{}\"", whole.substr(0, whole.find('\n')).substr(0, kQuotedChars));
}

}  // namespace

// Somebody else's session at the daemon (a person's, a monitoring agent's) makes ours fail now and
// then, so a refusal counts only when it is repeated. All commands but quit can be given twice.
base::Result<std::string> MpsConsole::command(const std::string& command) const {
  auto pause = kFirstPause;
  for (int attempt = 1;; ++attempt) {
    auto answer = ask(command);
    const bool refused = !answer && answer.error().code == ErrorCode::kUnavailable;
    if (!refused || attempt == kAttempts || command == "quit") return answer;
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

base::Result<std::string> MpsConsole::ask(const std::string& command) const {
  ChildSpec spec;
  spec.program = control_binary;
  spec.environment = environment;
  spec.input = command;
  spec.timeout = timeout;
  auto outcome = run_child(spec);
  if (!outcome) {
    return base::fail(ErrorCode::kIo, outcome.error().message +
                                          ": --mps-control must name nvidia-cuda-mps-control");
  }
  if (outcome->timed_out) {
    return base::fail(
        ErrorCode::kTimeout,
        fmt::format("the MPS control daemon of {} did not answer {} within {} ms: it hangs",
                    gpu_uuid, command, timeout.count()));
  }
  if (!outcome->succeeded()) {
    const std::string_view text =
        trimmed(outcome->error).empty() ? outcome->output : std::string_view(outcome->error);
    const std::string how = outcome->signal != 0 ? fmt::format("signal {}", outcome->signal)
                                                 : fmt::format("exit code {}", outcome->exit_code);
    return base::fail(ErrorCode::kUnavailable,
                      fmt::format("the MPS control daemon of {} refuses {} ({}): {}", gpu_uuid,
                                  command, how, quoted(text)));
  }
  return std::string(trimmed(outcome->output));
}

base::Result<double> MpsConsole::default_active_thread_percentage() const {
  return command("get_default_active_thread_percentage").and_then(parse_thread_percentage);
}

base::Result<std::vector<pid_t>> MpsConsole::server_list() const {
  return command("get_server_list").and_then(parse_server_list);
}

base::Result<std::string> MpsConsole::server_status(pid_t server) const {
  return command(fmt::format("get_server_status {}", server));
}

base::Result<std::vector<pid_t>> parse_server_list(std::string_view answer) {
  std::vector<pid_t> pids;
  for (std::string_view rest = trimmed(answer); !rest.empty(); rest = trimmed(rest)) {
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), pid);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const bool whole = rest.empty() || kBlanks.find(rest.front()) != std::string_view::npos;
    if (error != std::errc{} || !whole || pid <= 0) {
      return base::fail(
          ErrorCode::kUnavailable,
          fmt::format("get_server_list gave {}; process ids were expected", quoted(answer)));
    }
    pids.push_back(pid);
  }
  return pids;
}

base::Result<double> parse_thread_percentage(std::string_view answer) {
  const std::string_view text = trimmed(answer);
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(percent >= 0 && percent <= 100)) {
    return base::fail(
        ErrorCode::kUnavailable,
        fmt::format("get_default_active_thread_percentage gave {}; a number from 0 to "
                    "100 was expected",
                    quoted(answer)));
  }
  return percent;
}

}  // namespace cotenant::adapters
