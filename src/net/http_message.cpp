#include "net/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace cotenant::net {
namespace {

// RFC 9110, 5.6.2: the characters of methods and header names.
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || kMarks.find(static_cast<char>(c)) != kMarks.npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

bool is_target(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

base::Status refuse(std::string message) {
  return base::fail(base::ErrorCode::kInvalidParameter, std::move(message));
}

}  // namespace

base::Status check_headers(const std::vector<ports::HttpHeader>& headers) {
  for (const ports::HttpHeader& header : headers) {
    if (!is_token(header.name)) {
      return refuse(fmt::format("header name '{}': want letters, digits and hyphens",
                                header.name.substr(0, 100)));
    }
    if (!is_field_value(header.value)) {
      return refuse(fmt::format("header {}: the value has a control character", header.name));
    }
  }
  return {};
}

base::Status check_request(const ports::HttpRequest& request) {
  if (!is_token(request.method)) return refuse("method: want letters only, such as GET");
  if (!is_target(request.target)) {
    return refuse(
        "target: want a path without spaces, control or non-ASCII characters (encode them)");
  }
  return check_headers(request.headers);
}

bool equal_ignoring_case(std::string_view left, std::string_view right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(),
      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

bool is_framing_header(std::string_view name) {
  return equal_ignoring_case(name, "Content-Length") ||
         equal_ignoring_case(name, "Transfer-Encoding") || equal_ignoring_case(name, "Connection");
}

}  // namespace cotenant::net
