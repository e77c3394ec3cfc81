// The form of every refusal of a request: "<member>: <what would be right>".
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/result.h"

namespace cotenant::codec {

inline base::Error invalid_error(std::string_view member, std::string_view text) {
  return {base::ErrorCode::kInvalidParameter, fmt::format("{}: {}", member, text)};
}

inline tl::unexpected<base::Error> invalid(std::string_view member, std::string_view text) {
  return base::fail(invalid_error(member, text));
}

}  // namespace cotenant::codec
