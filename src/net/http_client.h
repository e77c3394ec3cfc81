// The HTTP/1.1 client: ports::HttpClient for "http://host:port", "https://host:port" and
// "unix:///path".
//
// Any thread; each call opens a connection of its own and closes it. Errors, with the request and
// the endpoint in the message:
//   kInvalidParameter  the endpoint, or a method, target or header that would break the message
//   kUnavailable       cannot connect
//   kTimeout           no complete answer in time
//   kProtocol          the answer is not HTTP, or larger than a limit; stream(): its status is not
//   200 kIo                the connection broke
// stream() has no time limit after the connection is made: an engine may send the header of an
// endless answer only with its first byte. Host, Content-Length and Connection are set here; a Host
// among the request's headers wins (signatures cover it).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/result.h"
#include "ports/http.h"

namespace cotenant::net {

struct HttpClientOptions {
  std::chrono::milliseconds connect_timeout{5000};  // of stream(); send() has its own time limit
  std::size_t header_bytes = base::limits::kRequestHeaderBytes;
  std::size_t body_bytes = std::size_t{16} * 1024 * 1024;  // of send()
  std::string ca_certificate;  // a PEM file, for https; empty: the system's
};

base::Result<std::unique_ptr<ports::HttpClient>> make_http_client(std::string_view endpoint,
                                                                  HttpClientOptions options = {});

}  // namespace cotenant::net
