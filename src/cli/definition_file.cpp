#include "cli/definition_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/limits.h"

namespace cotenant::cli {

bool names_file(const std::string& what) {
  if (what.rfind("arn:", 0) == 0) return false;
  std::error_code ignored;
  return what.find('/') != std::string::npos ||
         std::filesystem::path(what).extension() == ".json" ||
         std::filesystem::is_regular_file(what, ignored);
}

base::Result<codec::Json> read_json_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("{}: {}; give a file with a task definition in JSON", path,
                                  error ? error.message() : "is not a regular file"));
  }
  const auto bytes = std::filesystem::file_size(path, error);
  if (bytes > base::limits::kRequestBodyBytes) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("{}: has {} bytes; a task definition is at most {}", path, bytes,
                                  base::limits::kTaskDefinitionBytes));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  std::ostringstream text;
  text << file.rdbuf();
  auto json = codec::Json::parse(text.str());
  if (!json) return base::fail(base::ErrorCode::kClient, path + ": " + json.error().message);
  if (!json->is_object()) {
    return base::fail(base::ErrorCode::kClient,
                      path + ": must be an object, the input of RegisterTaskDefinition or RunTask");
  }
  return json;
}

}  // namespace cotenant::cli
