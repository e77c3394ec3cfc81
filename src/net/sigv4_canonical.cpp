// The canonical form of a request (AWS IAM User Guide, "Create a signed AWS API request", step 1).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/crypto.h"
#include "net/http_message.h"
#include "net/sigv4.h"

namespace cotenant::net {
namespace {

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string uri_encode(std::string_view text, bool keep_slash) {
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slash && c == '/')) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// An escape that is none stays as it is.
std::string uri_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    decoded += text[i];
  }
  return decoded;
}

// Dot segments and empty segments go (services other than S3), then everything is encoded once more:
// the path that arrived is encoded already.
std::string canonical_path(std::string_view path) {
  std::vector<std::string_view> segments;
  const bool ends_with_slash = path.size() > 1 && path.back() == '/';
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view segment = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (segment == "..") {
      if (!segments.empty()) segments.pop_back();
    } else if (!segment.empty() && segment != ".") {
      segments.push_back(segment);
    }
  }
  std::string canonical;
  for (const std::string_view segment : segments) {
    canonical += '/';
    canonical += uri_encode(segment, false);
  }
  if (canonical.empty() || ends_with_slash) canonical += '/';
  return canonical;
}

std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view parameter = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    if (parameter.empty()) continue;
    const std::size_t equals = parameter.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : parameter.substr(equals + 1);
    parameters.emplace_back(uri_encode(uri_decode(parameter.substr(0, equals)), false),
                            uri_encode(uri_decode(value), false));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string canonical;
  for (const auto& [name, value] : parameters) {
    if (!canonical.empty()) canonical += '&';
    canonical += name + '=' + value;
  }
  return canonical;
}

// Without blanks at the ends, and one for several between.
std::string trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!is_blank) {
      text += c;
    } else if (!text.empty() && text.back() != ' ') {
      text += ' ';
    }
  }
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string canonical_request(const ports::HttpRequest& request, std::string_view signed_headers,
                              std::string_view payload_hash) {
  const std::string_view target = request.target;
  const std::size_t mark = target.find('?');
  const std::string_view query =
      mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
  std::string text = fmt::format("{}\n{}\n{}\n", request.method,
                                 canonical_path(target.substr(0, mark)), canonical_query(query));
  std::string_view names = signed_headers;
  while (!names.empty()) {
    const std::size_t end = names.find(';');
    const std::string_view name = names.substr(0, end);
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
    text += name;
    char before = ':';
    bool is_there = false;
    for (const ports::HttpHeader& header : request.headers) {
      if (!equal_ignoring_case(header.name, name)) continue;
      text += before;
      text += trimmed(header.value);
      before = ',';
      is_there = true;
    }
    if (!is_there) text += ':';
    text += '\n';
  }
  return text + fmt::format("\n{}\n{}", signed_headers, payload_hash);
}

std::string sigv4_signature(std::string_view canonical, std::string_view amz_date,
                            const std::string& secret, std::string_view region,
                            std::string_view service) {
  const std::string_view date = amz_date.substr(0, 8);
  const std::string to_sign = fmt::format("AWS4-HMAC-SHA256\n{}\n{}/{}/{}/aws4_request\n{}",
                                          amz_date, date, region, service, sha256_hex(canonical));
  Sha256 key = hmac_sha256("AWS4" + secret, date);
  for (const std::string_view part : {region, service, std::string_view("aws4_request")}) {
    key = hmac_sha256(bytes(key), part);
  }
  return hex(hmac_sha256(bytes(key), to_sign));
}

}  // namespace cotenant::net
