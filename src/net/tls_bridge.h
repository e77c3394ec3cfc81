// Private to net's .cpp files. TLS as a pipe in front of a plain socket: whoever is given the plain
// end reads and writes it as if there were no TLS, so that there is one kind of session
// (docs/adr/0011-tls-as-a-pipe.md).
//
// A bridge lives until either end is closed: closing the plain end says good-bye to the peer
// (close_notify), within kTlsGoodbye. It is a Session of its registry, so that stop() waits for it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/session.h"
#include "net/tls.h"

namespace cotenant::net {

inline constexpr std::chrono::milliseconds kTlsGoodbye{1000};

struct TlsBridgeOptions {
  TlsContextPtr context;
  // Of a client: whom the certificate must name. Empty: we are the server.
  std::string server_name;
  std::chrono::milliseconds handshake_timeout{10000};
};

// Called once, on the bridge's strand: the handshake is done, or why it has failed (kUnavailable,
// kTimeout).
using TlsHandshakeDone = std::function<void(base::Status)>;

// `encrypted` is connected and its executor a strand (or has one thread). The plain end belongs to
// `plain_executor`. May be used at once: what is written waits for the handshake. `sessions` may be
// null where the caller owns the io_context. Errors: kUnavailable (no descriptors).
base::Result<StreamSocket> bridge_tls(const std::shared_ptr<SessionRegistry>& sessions,
                                      StreamSocket encrypted, asio::any_io_executor plain_executor,
                                      TlsBridgeOptions options, TlsHandshakeDone done);

}  // namespace cotenant::net
