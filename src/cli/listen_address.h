// "127.0.0.1:8484", "[::1]:8484" or "localhost:0" to its parts.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cotenant::cli {

struct ListenAddress {
  std::string host;
  std::uint16_t port = 0;

  std::string url(bool is_tls = false) const;
};

// Errors: kInvalidParameter.
base::Result<ListenAddress> parse_listen_address(const std::string& text);

}  // namespace cotenant::cli
