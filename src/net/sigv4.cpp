#include "net/sigv4.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "net/crypto.h"
#include "net/http_message.h"

namespace cotenant::net {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kTerminator = "aws4_request";
constexpr std::size_t kAuthorizationBytes = 8192;
constexpr std::size_t kSignatureChars = 64;

tl::unexpected<base::Error> incomplete(std::string message) {
  return base::fail(base::ErrorCode::kIncompleteSignature, std::move(message));
}

tl::unexpected<base::Error> invalid(std::string message) {
  return base::fail(base::ErrorCode::kInvalidSignature, std::move(message));
}

// What a client sent, for a message: short and printable.
std::string shown(std::string_view text) {
  std::string clean(text.substr(0, 128));
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return clean;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// keyid/date/region/service/aws4_request. The key id may hold no slash (ours never do).
base::Status split_credential(std::string_view credential, SigV4Authorization& parsed) {
  std::string_view* const parts[] = {&parsed.access_key_id, &parsed.date, &parsed.region,
                                     &parsed.service};
  const auto slashes = std::count(credential.begin(), credential.end(), '/');
  if (slashes != 4) {
    return incomplete(fmt::format(
        "Authorization: Credential must be KEY/YYYYMMDD/REGION/SERVICE/aws4_request, not '{}'",
        shown(credential)));
  }
  for (std::string_view* const part : parts) {
    const std::size_t slash = credential.find('/');
    *part = credential.substr(0, slash);
    credential.remove_prefix(slash + 1);
    if (part->empty()) {
      return incomplete("Authorization: Credential has an empty part between its slashes");
    }
  }
  if (credential != kTerminator) {
    return invalid(
        fmt::format("Credential should be scoped with a valid terminator: '{}', not '{}'",
                    kTerminator, shown(credential)));
  }
  return {};
}

base::Status check_signed_headers(std::string_view list) {
  std::string_view before;
  std::string_view rest = list;
  for (;;) {
    const std::size_t end = rest.find(';');
    const std::string_view name = rest.substr(0, end);
    const bool is_lower_case = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return c > ' ' && c < 0x7f && c != ':' && c != ',' && !(c >= 'A' && c <= 'Z');
    });
    if (!is_lower_case || name <= before) {
      return incomplete(
          fmt::format("Authorization: SignedHeaders must be lower-case names in ascending order, "
                      "separated by semicolons, not '{}'",
                      shown(list)));
    }
    if (end == std::string_view::npos) return {};
    before = name;
    rest.remove_prefix(end + 1);
  }
}

bool is_signed(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t end = list.find(';');
    if (equal_ignoring_case(list.substr(0, end), name)) return true;
    if (end == std::string_view::npos) return false;
    list.remove_prefix(end + 1);
  }
  return false;
}

// "20150830T123600Z" to seconds since the epoch.
std::optional<std::int64_t> parse_amz_date(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z' || !is_digits(text.substr(0, 8)) ||
      !is_digits(text.substr(9, 6))) {
    return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) value = 10 * value + (text[i] - '0');
    return value;
  };
  std::tm utc{};
  utc.tm_year = number(0, 4) - 1900;
  utc.tm_mon = number(4, 2) - 1;
  utc.tm_mday = number(6, 2);
  utc.tm_hour = number(9, 2);
  utc.tm_min = number(11, 2);
  utc.tm_sec = number(13, 2);
  std::tm normal = utc;
  const std::time_t seconds = timegm(&normal);
  // The 31st of February would have become a day of March.
  if (normal.tm_mday != utc.tm_mday || normal.tm_mon != utc.tm_mon ||
      normal.tm_hour != utc.tm_hour || normal.tm_min != utc.tm_min || normal.tm_sec != utc.tm_sec) {
    return std::nullopt;
  }
  return seconds;
}

std::string amz_date(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

// The one value of a header that must not come twice.
base::Result<std::string_view> single_header(const ports::HttpRequest& request,
                                             std::string_view name) {
  std::string_view value;
  int count = 0;
  for (const ports::HttpHeader& header : request.headers) {
    if (!equal_ignoring_case(header.name, name)) continue;
    value = header.value;
    ++count;
  }
  if (count > 1) return incomplete(fmt::format("{}: sent {} times, want once", name, count));
  return trim(value);
}

base::Status check_scope(const SigV4Authorization& parsed, const SigV4Rules& rules,
                         std::string_view date) {
  if (parsed.region != rules.region) {
    return invalid(
        fmt::format("Credential should be scoped to a valid region: '{}', not '{}'; set "
                    "the client's region to that",
                    rules.region, shown(parsed.region)));
  }
  if (parsed.service != rules.service) {
    return invalid(fmt::format("Credential should be scoped to correct service: '{}', not '{}'",
                               rules.service, shown(parsed.service)));
  }
  if (parsed.date != date.substr(0, 8)) {
    return invalid(
        fmt::format("Date in Credential scope does not match that of X-Amz-Date: '{}' is "
                    "not the day of '{}'",
                    shown(parsed.date), date));
  }
  return {};
}

base::Status check_time(std::string_view date, std::int64_t signed_s, std::int64_t now_s,
                        std::int64_t window_s) {
  const std::int64_t minutes = window_s / 60;
  if (signed_s < now_s - window_s) {
    return invalid(fmt::format("Signature expired: {} is now earlier than {} ({} - {} min.)", date,
                               amz_date(now_s - window_s), amz_date(now_s), minutes));
  }
  if (signed_s > now_s + window_s) {
    return invalid(
        fmt::format("Signature not yet current: {} is still later than {} ({} + {} min.)", date,
                    amz_date(now_s + window_s), amz_date(now_s), minutes));
  }
  return {};
}

// Host and every X-Amz-* header that was sent must be signed, and what is signed must be there.
base::Status check_coverage(const ports::HttpRequest& request, std::string_view signed_headers) {
  constexpr std::string_view kAmzPrefix = "x-amz-";
  if (!is_signed(signed_headers, "host")) {
    return invalid("'Host' must be a 'SignedHeader' in the Authorization header");
  }
  for (const ports::HttpHeader& header : request.headers) {
    const std::string_view start = std::string_view(header.name).substr(0, kAmzPrefix.size());
    if (equal_ignoring_case(start, kAmzPrefix) && !is_signed(signed_headers, header.name)) {
      return invalid(fmt::format("'{}' must be a 'SignedHeader' in the Authorization header",
                                 shown(header.name)));
    }
  }
  std::string_view rest = signed_headers;
  while (!rest.empty()) {
    const std::size_t end = rest.find(';');
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!ports::has_header(request.headers, name)) {
      return invalid(
          fmt::format("SignedHeaders names '{}', which the request does not have", shown(name)));
    }
  }
  return {};
}

}  // namespace

base::Result<SigV4Authorization> parse_sigv4_authorization(std::string_view header) {
  if (header.size() > kAuthorizationBytes) {
    return incomplete(fmt::format("Authorization: has more than {} bytes", kAuthorizationBytes));
  }
  header = trim(header);
  const std::size_t blank = header.find(' ');
  if (header.substr(0, blank) != kAlgorithm) {
    return incomplete(fmt::format("Authorization: must begin with {}, not '{}'", kAlgorithm,
                                  shown(header.substr(0, blank).substr(0, 40))));
  }
  std::string_view credential;
  SigV4Authorization parsed;
  struct Part {
    std::string_view name;
    std::string_view* value;
  };
  const Part parts[] = {{"Credential", &credential},
                        {"SignedHeaders", &parsed.signed_headers},
                        {"Signature", &parsed.signature}};
  std::string_view rest = blank == std::string_view::npos ? "" : header.substr(blank + 1);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = trim(rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    const std::size_t equals = item.find('=');
    const auto* const part =
        std::find_if(std::begin(parts), std::end(parts),
                     [&](const Part& known) { return known.name == item.substr(0, equals); });
    if (part == std::end(parts) || equals == std::string_view::npos) {
      return incomplete(fmt::format(
          "Authorization: '{}' is none of Credential=, SignedHeaders=, Signature=", shown(item)));
    }
    if (!part->value->empty()) {
      return incomplete(fmt::format("Authorization: {} comes twice", part->name));
    }
    *part->value = item.substr(equals + 1);
  }
  for (const Part& part : parts) {
    if (part.value->empty()) {
      return incomplete(fmt::format("Authorization header requires '{}' parameter", part.name));
    }
  }
  if (auto status = check_signed_headers(parsed.signed_headers); !status) {
    return base::fail(status.error());
  }
  if (parsed.signature.size() != kSignatureChars ||
      parsed.signature.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return incomplete(
        fmt::format("Authorization: Signature must be {} lower-case hex digits", kSignatureChars));
  }
  if (auto status = split_credential(credential, parsed); !status) {
    return base::fail(status.error());
  }
  return parsed;
}

base::Result<std::string> verify_sigv4(const ports::HttpRequest& request, const SigV4Rules& rules,
                                       std::int64_t now_s, const FindSecret& find_secret) {
  auto authorization = single_header(request, "Authorization");
  if (!authorization) return base::fail(authorization.error());
  if (authorization->empty()) {
    if (request.target.find("X-Amz-Signature=") != std::string::npos) {
      return incomplete("want the signature in header Authorization, not in the query");
    }
    return base::fail(base::ErrorCode::kMissingAuthenticationToken,
                      "Missing Authentication Token: want a request signed with AWS Signature "
                      "Version 4 in header Authorization");
  }
  auto parsed = parse_sigv4_authorization(*authorization);
  if (!parsed) return base::fail(parsed.error());
  auto date = single_header(request, "X-Amz-Date");
  if (!date) return base::fail(date.error());
  const auto signed_s = parse_amz_date(*date);
  if (!signed_s) {
    return incomplete(
        fmt::format("X-Amz-Date: must be like 20260830T123600Z (ISO 8601, basic format), not '{}'",
                    shown(*date)));
  }
  const auto secret = find_secret(parsed->access_key_id);
  // There are no temporary credentials, so no session token is known.
  if (!secret || ports::has_header(request.headers, "X-Amz-Security-Token")) {
    return base::fail(base::ErrorCode::kUnrecognizedClient,
                      "The security token included in the request is invalid.");
  }
  if (auto status = check_scope(*parsed, rules, *date); !status) return base::fail(status.error());
  if (auto status = check_time(*date, *signed_s, now_s, rules.window_s); !status) {
    return base::fail(status.error());
  }
  if (auto status = check_coverage(request, parsed->signed_headers); !status) {
    return base::fail(status.error());
  }

  const std::string payload_hash = sha256_hex(request.body);
  auto sent_hash = single_header(request, "X-Amz-Content-Sha256");
  if (!sent_hash) return base::fail(sent_hash.error());
  if (ports::has_header(request.headers, "X-Amz-Content-Sha256") && *sent_hash != payload_hash) {
    return invalid("X-Amz-Content-Sha256 is not the SHA-256 of the body; the body must be signed");
  }
  const std::string expected =
      sigv4_signature(canonical_request(request, parsed->signed_headers, payload_hash), *date,
                      *secret, parsed->region, parsed->service);
  if (!equal_in_constant_time(expected, parsed->signature)) {
    return invalid(
        "The request signature we calculated does not match the signature you provided. Check your "
        "secret access key and signing method.");
  }
  return std::string(parsed->access_key_id);
}

void sign_sigv4(ports::HttpRequest& request, const AwsCredentials& credentials,
                const std::string& region, const std::string& service, std::int64_t now_s) {
  const std::string date = amz_date(now_s);
  request.headers.push_back({"X-Amz-Date", date});
  std::vector<std::string> names;
  for (const ports::HttpHeader& header : request.headers) {
    std::string name = header.name;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const bool covered = name == "host" || name == "content-type" || name.rfind("x-amz-", 0) == 0;
    if (covered) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string signed_headers = fmt::format("{}", fmt::join(names, ";"));
  const std::string signature =
      sigv4_signature(canonical_request(request, signed_headers, sha256_hex(request.body)), date,
                      credentials.secret_access_key, region, service);
  request.headers.push_back(
      {"Authorization", fmt::format("{} Credential={}/{}/{}/{}/{}, SignedHeaders={}, Signature={}",
                                    kAlgorithm, credentials.access_key_id, date.substr(0, 8),
                                    region, service, kTerminator, signed_headers, signature)});
}

}  // namespace cotenant::net
