// AWS Signature Version 4 over header Authorization, both sides: what an AWS service checks, and
// what a client sends. Pure functions, any thread.
//
// Source of the rules: AWS IAM User Guide, "Create a signed AWS API request" and "Troubleshoot
// Signature Version 4 signing". The window of five minutes is what AWS's JSON services say in their
// own error messages ("... - 5 min."); SDKs correct their clock from the Date header when they are
// further off.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ports/http_message.h"

namespace cotenant::net {

struct AwsCredentials {
  std::string access_key_id;
  std::string secret_access_key;
};

// What header Authorization says. Views into the header.
struct SigV4Authorization {
  std::string_view access_key_id;
  std::string_view date;  // YYYYMMDD
  std::string_view region;
  std::string_view service;
  std::string_view signed_headers;  // as sent: lower-case names between semicolons, ascending
  std::string_view signature;       // 64 hex digits
};

// Errors: kIncompleteSignature, naming the part and what would be right.
base::Result<SigV4Authorization> parse_sigv4_authorization(std::string_view header);

struct SigV4Rules {
  std::string region;
  std::string service = "ecs";
  std::int64_t window_s = 300;
};

// The secret of an access key that the server knows.
using FindSecret = std::function<std::optional<std::string>(std::string_view access_key_id)>;

// Checks a request as it arrived (its body whole); `now_s` in seconds since the epoch. The access
// key that has signed. Errors: kMissingAuthenticationToken, kIncompleteSignature,
// kUnrecognizedClient, kInvalidSignature (wrong, too old, too early, other scope). The same signature
// is good again until its window ends, as with AWS (docs/adr/0010-signatures-replays-and-plain-http.md).
base::Result<std::string> verify_sigv4(const ports::HttpRequest& request, const SigV4Rules& rules,
                                       std::int64_t now_s, const FindSecret& find_secret);

// Adds X-Amz-Date and Authorization. The request must have its Host. Signs Host, Content-Type and
// all X-Amz-* headers.
void sign_sigv4(ports::HttpRequest& request, const AwsCredentials& credentials,
                const std::string& region, const std::string& service, std::int64_t now_s);

// The canonical request, which is hashed and signed; for tests. `signed_headers` as in
// Authorization.
std::string canonical_request(const ports::HttpRequest& request, std::string_view signed_headers,
                              std::string_view payload_hash);

// The signature of a canonical request, in hex.
std::string sigv4_signature(std::string_view canonical, std::string_view amz_date,
                            const std::string& secret, std::string_view region,
                            std::string_view service);

}  // namespace cotenant::net
