#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <string>

namespace cotenant::base::log {
namespace {

std::atomic<Level> g_level{Level::kInfo};

std::string_view label(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      return "error";
    case Level::kSilent:
      break;
  }
  return "?";
}

}  // namespace

void set_level(Level level) {
  g_level = level;
}

void write(Level level, std::string_view text) {
  if (level < g_level.load()) return;
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since_epoch = now.time_since_epoch();
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::string line = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z {:<5} {}\n",
                                 utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                                 utc.tm_min, utc.tm_sec, millis, label(level), text);
  // A tenant's text must not be able to look like lines of ours.
  std::replace_if(
      line.begin(), line.end() - 1, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  // One write call, so that lines of several threads do not mix; a lost log line is no error.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace cotenant::base::log
