// Where a client verb finds its control plane, and what it signs with.
//
// The endpoint: --endpoint, else COTENANT_ENDPOINT, else the unix socket of the installation on this
// machine (--data-dir) where the caller may use it, else http://127.0.0.1:8484. On the unix socket
// nothing is signed. Credentials: --credentials, else the file that AWS_SHARED_CREDENTIALS_FILE
// names, else <data dir>/credentials, else AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; of a file
// the profile AWS_PROFILE, else [default]. None at all: requests go out unsigned, which a server
// with --auth off takes.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "net/sigv4.h"

namespace cotenant::cli {

std::string find_endpoint(const ClientOptions& options);

struct Signer {
  net::AwsCredentials credentials;
  std::string region;
};

// Errors: those of the file that was named (not of one that was only looked for), and
// kInvalidParameter, no such profile.
base::Result<std::optional<Signer>> find_signer(const ClientOptions& options);

}  // namespace cotenant::cli
