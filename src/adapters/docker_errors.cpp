#include "adapters/docker_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "codec/json.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

// Engines quote long command lines and configurations in their texts.
constexpr std::size_t kMessageBytes = 2048;

bool contains_ignoring_case(std::string_view text, std::string_view lower_case_word) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(text.begin(), text.end(), lower_case_word.begin(), lower_case_word.end(),
                     same) != text.end();
}

ErrorCode code_for(int status, std::string_view message) {
  const bool not_found = contains_ignoring_case(message, "no such container") ||
                         contains_ignoring_case(message, "no such image");
  if (status == 404 && not_found) return ErrorCode::kNotFound;
  // Podman answers 500 with "the container name ... is already in use".
  const bool name_taken = contains_ignoring_case(message, "container name") &&
                          contains_ignoring_case(message, "already in use");
  if ((status == 409 || status == 500) && name_taken) return ErrorCode::kConflict;
  if (status == 503) return ErrorCode::kUnavailable;
  return ErrorCode::kClient;
}

}  // namespace

base::Error docker_error(std::string_view doing, const ports::HttpResponse& response) {
  const base::Result<codec::Json> body = codec::Json::parse(response.body);
  std::string message = body ? body->string_or("message", "") : "";
  if (message.empty()) {
    return {ErrorCode::kProtocol,
            fmt::format("{}: HTTP status {} without the engine's message", doing, response.status)};
  }
  if (message.size() > kMessageBytes) {
    message.resize(kMessageBytes);
    message += "...";
  }
  return {code_for(response.status, message), fmt::format("{}: {}", doing, message)};
}

bool is_no_such_container(const base::Error& error) {
  return error.code == ErrorCode::kNotFound &&
         contains_ignoring_case(error.message, "no such container");
}

}  // namespace cotenant::adapters
