// Input: a request: a line "METHOD target", headers, an empty line, the body.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "net/sigv4.h"

namespace {

using namespace cotenant;

constexpr std::int64_t kNowSeconds = 1'700'000'000;

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

ports::HttpRequest request_of(std::string_view text) {
  ports::HttpRequest request;
  const std::string_view first = take_line(text);
  const std::size_t blank = std::min(first.find(' '), first.size());
  request.method = first.substr(0, blank);
  request.target = first.substr(std::min(blank + 1, first.size()));
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) break;
    const std::size_t colon = std::min(line.find(':'), line.size());
    request.headers.push_back({std::string(line.substr(0, colon)),
                               std::string(line.substr(std::min(colon + 1, line.size())))});
  }
  request.body = text;
  return request;
}

bool is_signed(const ports::HttpRequest& request, const std::string& secret) {
  const net::SigV4Rules rules{"us-east-1"};
  return net::verify_sigv4(request, rules, kNowSeconds,
                           [&](std::string_view) { return std::optional<std::string>(secret); })
      .has_value();
}

}  // namespace

// Nobody passes without the secret; who signs the same request with it does, and not with another.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (const auto parsed = net::parse_sigv4_authorization(text)) {
    FUZZ_CHECK(parsed->signature.size() == 64);
  }
  ports::HttpRequest request = request_of(text);
  FUZZ_CHECK(!is_signed(request, "a secret that no input knows"));

  const std::string_view taken[] = {"authorization", "x-amz-date", "host"};
  for (const std::string_view name : taken) {
    std::erase_if(request.headers, [&](const auto& header) {
      return header.name.size() == name.size() &&
             std::equal(name.begin(), name.end(), header.name.begin(), [](char a, char b) {
               return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b);
             });
    });
  }
  request.headers.push_back({"Host", "127.0.0.1"});
  net::sign_sigv4(request, {"AKID", "secret"}, "us-east-1", "ecs", kNowSeconds);
  FUZZ_CHECK(!is_signed(request, "another"));
  return 0;
}
