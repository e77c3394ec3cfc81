// Where a server listens, as people write it: "http://127.0.0.1:8484", "https://gpu.example",
// "http://[::1]:8484" or "unix:///run/docker.sock". A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cotenant::net {

struct Endpoint {
  enum class Kind { kTcp, kUnix };

  Kind kind = Kind::kTcp;
  std::string host;  // kTcp: a name or an address, without brackets
  std::uint16_t port = 0;
  bool is_tls = false;  // https
  std::string path;     // kUnix: absolute
  std::string text;     // as it was given, for messages

  // The value of the header Host. A unix socket has no authority; engines accept "localhost".
  std::string host_header() const;
};

// Errors: kInvalidParameter, with what would be right.
base::Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace cotenant::net
