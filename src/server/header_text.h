// Printable ASCII, for what goes into a header or a log line, or came from a header into a message.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace cotenant::server {

// Everything else becomes '?'.
inline std::string header_text(std::string_view text) {
  std::string clean(text);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return clean;
}

}  // namespace cotenant::server
