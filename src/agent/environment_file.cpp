#include "agent/environment_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/limits.h"

namespace cotenant::agent {

using core::EnvironmentVariable;

std::vector<EnvironmentVariable> parse_environment_file(std::string_view text) {
  std::vector<EnvironmentVariable> variables;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == std::string_view::npos || equals == 0) continue;
    if (line.find('\0') != std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const auto& variable) { return variable.name == name; });
    if (!known) variables.push_back({std::string(name), std::string(line.substr(equals + 1))});
  }
  return variables;
}

base::Result<std::vector<EnvironmentVariable>> read_environment_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("environment file {}: is no file on this instance", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("environment file {}: {}", path, std::strerror(errno)));
  }
  std::string text(base::limits::kEnvironmentFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > base::limits::kEnvironmentFileBytes) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("environment file {}: has more than {} bytes", path,
                                  base::limits::kEnvironmentFileBytes));
  }
  return parse_environment_file(text);
}

}  // namespace cotenant::agent
