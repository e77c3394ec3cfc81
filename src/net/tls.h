// TLS with given certificates (PEM files), 1.2 or newer. The contexts are opaque: OpenSSL stays in
// tls.cpp and tls_bridge.cpp.
//
// Loaded once and then only read: any thread. Errors: kInvalidParameter, naming the file and what is
// wrong with it.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace cotenant::net {

class TlsContext;
using TlsContextPtr = std::shared_ptr<TlsContext>;

// The certificate file holds the server's first and then the chain up to, without, the root. A key
// with a pass phrase is refused.
base::Result<TlsContextPtr> load_server_tls(const std::string& certificate_file,
                                            const std::string& key_file);

// `ca_file` empty: the system's certificate authorities.
base::Result<TlsContextPtr> load_client_tls(const std::string& ca_file);

}  // namespace cotenant::net
