// What goes over HTTP. Plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cotenant::ports {

struct HttpHeader {
  std::string name;
  std::string value;
};

// Whom a server's request comes from. Clients leave it as it is.
struct HttpPeer {
  std::string address;                // an IP address, or "unix"
  bool is_encrypted = false;          // TLS
  std::optional<std::uint32_t> user;  // of a unix socket (SO_PEERCRED): the peer's uid
};

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  std::vector<HttpHeader> headers;
  std::string body;
  HttpPeer peer = {};
};

class HttpBodyListener;

struct HttpResponse {
  int status = 200;
  std::vector<HttpHeader> headers;
  std::string body;
  // Of a server: more body follows through this one (chunked; until the connection ends with
  // HTTP/1.0).
  std::shared_ptr<HttpBodyListener> stream = nullptr;
};

// The value of the first header of that name (names compare without case), else an empty view.
std::string_view header_value(const std::vector<HttpHeader>& headers, std::string_view name);

bool has_header(const std::vector<HttpHeader>& headers, std::string_view name);

}  // namespace cotenant::ports
