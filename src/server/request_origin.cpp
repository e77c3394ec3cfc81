#include "server/request_origin.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <string>

#include "server/header_text.h"

namespace cotenant::server {
namespace {

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_loopback_address(const std::string& address) {
  if (address.find('\0') != std::string::npos) return false;  // inet_pton would read up to it only
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

bool is_loopback_host(std::string_view host) {
  if (is_loopback_address(std::string(host))) return true;
  std::string name;
  std::string_view rest;
  if (!host.empty() && host.front() == '[') {
    const std::size_t end = host.find(']');
    if (end == std::string_view::npos) return false;
    name = std::string(host.substr(1, end - 1));
    rest = host.substr(end + 1);
  } else {
    const std::size_t colon = host.find(':');
    name = std::string(host.substr(0, colon));
    rest = colon == std::string_view::npos ? std::string_view() : host.substr(colon);
  }
  if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return false;
  // Names compare without case.
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name == "localhost" || is_loopback_address(name);
}

base::Status check_request_origin(const ports::HttpRequest& request, bool is_on_loopback) {
  // Whatever its value: an empty Origin still means a browser.
  const bool has_origin = ports::has_header(request.headers, "Origin");
  if (has_origin) {
    return base::fail(base::ErrorCode::kAccessDenied,
                      "Origin: requests from web pages are refused; use an AWS SDK, the AWS CLI or "
                      "cotenant's own");
  }
  const std::string_view host = ports::header_value(request.headers, "Host");
  if (is_on_loopback && !is_loopback_host(host)) {
    return base::fail(
        base::ErrorCode::kAccessDenied,
        fmt::format("Host: '{}' is not a loopback address; call 127.0.0.1 or localhost",
                    header_text(host.substr(0, 128))));
  }
  return {};
}

}  // namespace cotenant::server
