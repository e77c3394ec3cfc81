// Base64 (RFC 4648). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cotenant::base {

// Section 5's alphabet ("-" and "_"), padded.
std::string base64url_encode(std::string_view bytes);

// Section 4's alphabet, padding optional. Nothing when the text is not base64.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace cotenant::base
