#include "cli/listen_address.h"

#include <fmt/format.h>

#include <charconv>

namespace cotenant::cli {

std::string ListenAddress::url(bool is_tls) const {
  const char* const scheme = is_tls ? "https" : "http";
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("{}://[{}]:{}", scheme, host, port)
            : fmt::format("{}://{}:{}", scheme, host, port);
}

base::Result<ListenAddress> parse_listen_address(const std::string& text) {
  const auto invalid = [&] {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        fmt::format("--listen: '{}' is not ADDRESS:PORT, for example 127.0.0.1:8484", text));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return invalid();
  ListenAddress address;
  address.host = text.substr(0, colon);
  if (address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc() || at != end || address.host.empty()) return invalid();
  return address;
}

}  // namespace cotenant::cli
