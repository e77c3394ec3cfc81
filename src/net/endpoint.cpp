#include "net/endpoint.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace cotenant::net {
namespace {

constexpr std::string_view kForms = "want http://host:port, https://host:port or unix:///path";
constexpr std::size_t kUnixPathBytes = sizeof(sockaddr_un{}.sun_path) - 1;
// RFC 1035: a host name has at most 253 characters.
constexpr std::size_t kHostChars = 253;

tl::unexpected<base::Error> refuse(std::string_view text, std::string_view why) {
  return base::fail(base::ErrorCode::kInvalidParameter,
                    fmt::format("endpoint '{}': {}", text.substr(0, 300), why));
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool is_ipv6_char(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' ||
         c == '.';
}

base::Result<Endpoint> parse_unix(std::string_view text, std::string_view path) {
  if (path.size() < 2 || path.front() != '/') {
    return refuse(text, "a unix socket needs an absolute path: unix:///run/docker.sock");
  }
  if (path.size() > kUnixPathBytes) {
    return refuse(text, fmt::format("the path of a unix socket has at most {} bytes, this has {}",
                                    kUnixPathBytes, path.size()));
  }
  if (path.find('\0') != std::string_view::npos) return refuse(text, "the path has a zero byte");
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::kUnix;
  endpoint.path = path;
  endpoint.text = text;
  return endpoint;
}

base::Result<Endpoint> parse_http(std::string_view text, std::string_view authority, bool is_tls) {
  if (!authority.empty() && authority.back() == '/') authority.remove_suffix(1);
  if (authority.find('@') != std::string_view::npos) {
    return refuse(text, "a user name or password in the URL is not supported");
  }
  if (authority.find_first_of("/?#") != std::string_view::npos) {
    return refuse(text, "want only host and port, without path, query or fragment");
  }

  Endpoint endpoint;
  std::string_view port_text;
  bool has_port = false;
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse(text, "the bracket '[' is not closed");
    endpoint.host = authority.substr(1, end - 1);
    const std::string_view rest = authority.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') {
      return refuse(text, "want ':port' or nothing after ']'");
    }
    has_port = !rest.empty();
    if (has_port) port_text = rest.substr(1);
    if (endpoint.host.find(':') == std::string::npos ||
        !std::all_of(endpoint.host.begin(), endpoint.host.end(), is_ipv6_char)) {
      return refuse(text, "between brackets an IPv6 address must stand, such as [::1]");
    }
  } else {
    const std::size_t colon = authority.find(':');
    endpoint.host = authority.substr(0, colon);
    has_port = colon != std::string_view::npos;
    if (has_port) port_text = authority.substr(colon + 1);
    if (port_text.find(':') != std::string_view::npos) {
      return refuse(text, "an IPv6 address must stand in brackets: http://[::1]:8484");
    }
    if (endpoint.host.empty()) return refuse(text, "the host is missing");
    if (endpoint.host.size() > kHostChars ||
        !std::all_of(endpoint.host.begin(), endpoint.host.end(), is_host_char)) {
      return refuse(text, "the host is not a name or an address");
    }
  }

  endpoint.is_tls = is_tls;
  endpoint.port = is_tls ? 443 : 80;
  if (has_port) {
    const char* const last = port_text.data() + port_text.size();
    const auto [end, error] = std::from_chars(port_text.data(), last, endpoint.port);
    if (error != std::errc{} || end != last || endpoint.port == 0) {
      return refuse(text, fmt::format("port '{}': want 1 to 65535", port_text));
    }
  }
  endpoint.text = text;
  return endpoint;
}

}  // namespace

std::string Endpoint::host_header() const {
  if (kind == Kind::kUnix) return "localhost";
  const bool is_ipv6 = host.find(':') != std::string::npos;
  const std::string name = is_ipv6 ? fmt::format("[{}]", host) : host;
  return port == (is_tls ? 443 : 80) ? name : fmt::format("{}:{}", name, port);
}

base::Result<Endpoint> parse_endpoint(std::string_view text) {
  constexpr std::string_view kHttp = "http://";
  constexpr std::string_view kHttps = "https://";
  constexpr std::string_view kUnix = "unix://";
  if (text.substr(0, kUnix.size()) == kUnix) return parse_unix(text, text.substr(kUnix.size()));
  if (text.substr(0, kHttp.size()) == kHttp) {
    return parse_http(text, text.substr(kHttp.size()), false);
  }
  if (text.substr(0, kHttps.size()) == kHttps) {
    return parse_http(text, text.substr(kHttps.size()), true);
  }
  return refuse(text, kForms);
}

}  // namespace cotenant::net
