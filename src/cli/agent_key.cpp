#include "cli/agent_key.h"

#include <fmt/format.h>

#include "base/private_file.h"
#include "cli/installation.h"
#include "net/crypto.h"
#include "server/agent_access.h"

namespace cotenant::cli {
namespace {

constexpr std::size_t kAgentKeyChars = 64;
constexpr std::string_view kAgentKeyAlphabet = "0123456789abcdef";

// Without the newline at its end. Errors: kIo.
base::Result<std::string> one_line(const std::string& path, std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (!text.empty() && text.find_first_of(" \t\r\n") == std::string::npos) return text;
  return base::fail(base::ErrorCode::kIo,
                    fmt::format("{}: must hold one word and nothing else", path));
}

}  // namespace

base::Result<std::vector<ports::HttpHeader>> agent_headers(const std::string& data_dir,
                                                           const std::string& instance_id,
                                                           const std::string& join_token_file) {
  const std::string path = agent_key_path(data_dir);
  auto key = base::read_private_file(path);
  if (!key) return base::fail(key.error());
  if (!*key) {
    *key = net::random_text(kAgentKeyChars, kAgentKeyAlphabet);
    if (auto status = base::write_private_file(path, **key + "\n"); !status) {
      return base::fail(status.error());
    }
  }
  auto line = one_line(path, **key);
  if (!line) return base::fail(line.error());
  std::vector<ports::HttpHeader> headers = {{server::kInstanceIdHeader, instance_id},
                                            {server::kInstanceKeyHeader, *line}};
  if (join_token_file.empty()) return headers;
  auto token = base::read_private_file(join_token_file, base::Privacy::kAny);
  if (!token) return base::fail(token.error());
  if (!*token) {
    return base::fail(base::ErrorCode::kIo,
                      fmt::format("--join-token-file {}: there is no such file", join_token_file));
  }
  line = one_line(join_token_file, **token);
  if (!line) return base::fail(line.error());
  headers.push_back({"Authorization", "Bearer " + *line});
  return headers;
}

}  // namespace cotenant::cli
