// The key pairs of an installation: <data dir>/credentials, in AWS's shared-credentials format, so
// that every SDK and CLI takes it by AWS_SHARED_CREDENTIALS_FILE.
//
// Each profile of the file is one key pair that the server accepts: a second one is how keys are
// changed without a gap (docs/security.md).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/sigv4.h"

namespace cotenant::cli {

struct CredentialProfile {
  net::AwsCredentials credentials;
  std::string region;  // empty: the file says none
};

// By profile name.
using CredentialProfiles = std::map<std::string, CredentialProfile>;

// `path` in error messages. Errors: kInvalidParameter, naming the line.
base::Result<CredentialProfiles> parse_credentials(const std::string& path,
                                                   const std::string& text);

// The server's side: makes the file with a new key pair where there is none (0600, durable). Errors,
// each with the remedy: kIo (cannot be read or written; not a plain file; others may read it),
// kInvalidParameter (broken).
base::Result<CredentialProfiles> load_or_create_credentials(const std::string& path,
                                                            const std::string& region);

// A client's side: the file must be there. Errors as above; nothing is said of who else may read it.
base::Result<CredentialProfiles> load_credentials(const std::string& path);

}  // namespace cotenant::cli
