// One line a message on standard error: time, level, text. Any thread.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace cotenant::base::log {

// kSilent is for set_level() only: nothing is written.
enum class Level { kDebug, kInfo, kWarn, kError, kSilent };

void set_level(Level level);
void write(Level level, std::string_view text);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cotenant::base::log
