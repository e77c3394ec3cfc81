// `logs` and `exec`.
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>

#include "base/clock.h"
#include "base/rfc3339.h"
#include "cli/api_client.h"
#include "cli/client_verbs.h"
#include "cli/exit_code.h"
#include "cli/stream_client.h"
#include "cli/task_queries.h"

namespace cotenant::cli {
namespace {

using base::ErrorCode;
using base::fail;
using base::Result;

// "10m" and the like before now, or a time in RFC 3339.
Result<base::TimeMs> parse_since(const std::string& text) {
  if (text.empty()) return 0;
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  constexpr std::string_view kUnits = "smhd";
  constexpr std::int64_t kUnitMs[] = {1000, 60'000, 3'600'000, 86'400'000};
  const std::size_t unit = stop + 1 == end ? kUnits.find(*stop) : std::string_view::npos;
  if (error == std::errc() && unit != std::string_view::npos && count >= 0 && count < 1'000'000) {
    return std::max<base::TimeMs>(1, base::SystemClock().now_ms() - count * kUnitMs[unit]);
  }
  const Result<base::TimeMs> time = base::parse_rfc3339(text);
  if (time) return *time;
  return fail(ErrorCode::kInvalidParameter,
              fmt::format("--since: '{}' must be like 90s, 10m, 3h, 2d, or a time like "
                          "2026-12-01T12:00:00Z",
                          text));
}

// A task by its id's beginning, as `stop` has it.
Result<StreamTargetOptions> find_target(const ClientOptions& options, const std::string& task,
                                        const std::string& container) {
  auto client = ApiClient::create(options);
  if (!client) return fail(client.error());
  auto arn = resolve_task(*client, task);
  if (!arn) return fail(arn.error());
  return StreamTargetOptions{*arn, container};
}

}  // namespace

int logs_verb(const ClientOptions& options, const LogsOptions& logs) {
  codec::StreamRequest request;
  request.follow = logs.follow;
  if (logs.tail >= 0) request.tail = logs.tail;
  request.timestamps = logs.timestamps;
  const auto since_ms = parse_since(logs.since);
  if (!since_ms) return report(since_ms.error());
  request.since_ms = *since_ms;
  const auto target = find_target(options, logs.task, logs.container);
  if (!target) return report(target.error());
  const auto end = run_stream(options, *target, request);
  if (!end) return report(end.error());
  if (end->error.empty()) return kExitOk;
  return report({ErrorCode::kClient, end->error});
}

int exec_verb(const ClientOptions& options, const ExecOptions& exec) {
  codec::StreamRequest request;
  request.kind = codec::StreamKind::kExec;
  request.command = exec.command;
  request.with_input = exec.interactive;
  request.tty = exec.tty;
  if (exec.tty && ::isatty(STDIN_FILENO) == 0) {
    return report(
        {ErrorCode::kInvalidParameter, "-t: standard input is no terminal; leave it out"});
  }
  const auto target = find_target(options, exec.task, exec.container);
  if (!target) return report(target.error());
  const auto end = run_stream(options, *target, request);
  if (!end) return report(end.error());
  if (!end->error.empty()) return report({ErrorCode::kClient, end->error});
  return end->exit_code.value_or(kExitRefused);
}

}  // namespace cotenant::cli
