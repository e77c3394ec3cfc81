// Private to net's .cpp files.
#pragma once

#include <boost/asio/ssl/context.hpp>

#include "net/asio.h"

namespace cotenant::net {

class TlsContext {
 public:
  explicit TlsContext(asio::ssl::context::method method) : ssl(method) {}
  asio::ssl::context ssl;
};

}  // namespace cotenant::net
