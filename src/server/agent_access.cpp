#include "server/agent_access.h"

#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "base/private_file.h"
#include "codec/json.h"
#include "net/crypto.h"
#include "server/header_text.h"

namespace cotenant::server {
namespace {

using base::ErrorCode;
using base::fail;
using codec::Json;

// cotenant-join.<id>.<secret>
constexpr std::string_view kTokenPrefix = "cotenant-join.";
constexpr std::size_t kTokenIdChars = 8;
constexpr std::size_t kTokenSecretChars = 40;
constexpr std::string_view kIdAlphabet = "0123456789abcdef";
constexpr std::string_view kSecretAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::string_view kBearer = "Bearer ";
constexpr std::size_t kKeyCharsMin = 32;
constexpr std::size_t kKeyCharsMax = 256;
constexpr std::int64_t kFormat = 1;

tl::unexpected<base::Error> denied(std::string why) {
  return fail(ErrorCode::kAccessDenied, std::move(why));
}

bool is_lower_hex(std::string_view text, std::size_t chars) {
  return text.size() == chars && text.find_first_not_of(kIdAlphabet) == std::string_view::npos;
}

}  // namespace

base::Result<std::unique_ptr<AgentAccess>> AgentAccess::open(std::string path,
                                                             const base::Clock& clock) {
  std::unique_ptr<AgentAccess> access(new AgentAccess(std::move(path), clock));
  if (auto status = access->load(); !status) return fail(status.error());
  return access;
}

base::Status AgentAccess::load() {
  auto text = base::read_private_file(path_);
  if (!text) return fail(text.error());
  if (!*text) return {};
  const auto damaged = [&](std::string_view why) {
    return fail(ErrorCode::kIo,
                fmt::format("{}: is damaged: {}; restore it from a backup, or remove it, and every "
                            "agent must join anew with a token",
                            path_, why));
  };
  const auto json = Json::parse(**text);
  if (!json) return damaged(json.error().message);
  if (json->integer_or("format", 0) != kFormat) {
    return damaged(fmt::format("format: this version reads only {}", kFormat));
  }
  for (const Json& entry : json->array_or_empty("tokens")) {
    JoinToken token{entry.string_or("id", ""), entry.string_or("hash", ""),
                    entry.integer_or("createdMs", 0), entry.integer_or("expiresMs", 0)};
    if (!is_lower_hex(token.id, kTokenIdChars) || !is_lower_hex(token.hash, 64)) {
      return damaged("tokens: one has no id or no hash");
    }
    tokens_[token.id] = std::move(token);
  }
  for (const Json& entry : json->array_or_empty("instances")) {
    const std::string id = entry.string_or("id", "");
    const std::string hash = entry.string_or("keyHash", "");
    if (id.empty() || !is_lower_hex(hash, 64))
      return damaged("instances: one has no id or no hash");
    keys_[id] = hash;
  }
  return {};
}

// With the lock held.
base::Status AgentAccess::save() const {
  Json tokens = Json::array();
  for (const auto& [id, token] : tokens_) {
    tokens.push(Json::object({{"id", id},
                              {"hash", token.hash},
                              {"createdMs", token.created_ms},
                              {"expiresMs", token.expires_ms}}));
  }
  Json instances = Json::array();
  for (const auto& [id, hash] : keys_) {
    instances.push(Json::object({{"id", id}, {"keyHash", hash}}));
  }
  Json json = Json::object({{"format", kFormat}});
  json.set("tokens", std::move(tokens)).set("instances", std::move(instances));
  return base::write_private_file(path_, json.dump_pretty() + "\n");
}

base::Result<NewJoinToken> AgentAccess::create_token(std::int64_t life_s) {
  if (life_s < base::limits::kJoinTokenSecondsMin || life_s > base::limits::kJoinTokenSecondsMax) {
    return fail(
        ErrorCode::kInvalidParameter,
        fmt::format("expiresInSeconds: want {} to {}, got {}", base::limits::kJoinTokenSecondsMin,
                    base::limits::kJoinTokenSecondsMax, life_s));
  }
  const std::lock_guard lock(mutex_);
  const base::TimeMs now = clock_.now_ms();
  const auto before = tokens_;
  std::erase_if(tokens_, [&](const auto& entry) { return entry.second.expires_ms <= now; });
  if (tokens_.size() >= base::limits::kJoinTokens) {
    tokens_ = before;
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("there are {} join tokens already; revoke some", before.size()));
  }
  NewJoinToken made;
  made.token.id = net::random_text(kTokenIdChars, kIdAlphabet);
  made.secret = fmt::format("{}{}.{}", kTokenPrefix, made.token.id,
                            net::random_text(kTokenSecretChars, kSecretAlphabet));
  made.token.hash = net::sha256_hex(made.secret);
  made.token.created_ms = now;
  made.token.expires_ms = now + life_s * 1000;
  tokens_[made.token.id] = made.token;
  if (auto status = save(); !status) {
    tokens_ = before;
    return fail(status.error());
  }
  return made;
}

std::vector<JoinToken> AgentAccess::tokens() const {
  const std::lock_guard lock(mutex_);
  std::vector<JoinToken> all;
  for (const auto& [id, token] : tokens_) all.push_back(token);
  return all;
}

base::Status AgentAccess::revoke_token(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.find(id);
  if (found == tokens_.end()) {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("id: there is no join token '{}'", header_text(id.substr(0, 64))));
  }
  const JoinToken kept = found->second;
  tokens_.erase(found);
  auto status = save();
  if (!status) tokens_[id] = kept;
  return status;
}

base::Status AgentAccess::forget_instance(const std::string& instance_id) {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(instance_id);
  if (found == keys_.end()) {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("containerInstance: no agent has joined as '{}'",
                            header_text(instance_id.substr(0, 64))));
  }
  const std::string kept = found->second;
  keys_.erase(found);
  auto status = save();
  if (!status) keys_[instance_id] = kept;
  return status;
}

// With the lock held.
base::Status AgentAccess::check_token(std::string_view secret) const {
  const std::string_view rest = secret.substr(0, kTokenPrefix.size()) == kTokenPrefix
                                    ? secret.substr(kTokenPrefix.size())
                                    : "";
  const auto found = tokens_.find(std::string(rest.substr(0, rest.find('.'))));
  if (found == tokens_.end() ||
      !net::equal_in_constant_time(found->second.hash, net::sha256_hex(secret))) {
    return denied("the join token is unknown or was revoked; `cotenant token create` makes one");
  }
  if (found->second.expires_ms <= clock_.now_ms()) {
    return fail(ErrorCode::kExpiredToken,
                fmt::format("the join token {} has run out; `cotenant token create` makes another",
                            found->second.id));
  }
  return {};
}

base::Result<std::string> AgentAccess::admit(const ports::HttpRequest& request, bool trusted) {
  const std::string id(ports::header_value(request.headers, kInstanceIdHeader));
  const std::string_view key = ports::header_value(request.headers, kInstanceKeyHeader);
  if (!is_lower_hex(id, 32)) {
    return denied(
        fmt::format("{}: want the agent's instance id, 32 lower-case hex digits; use an "
                    "agent of the control plane's version",
                    kInstanceIdHeader));
  }
  if (key.size() < kKeyCharsMin || key.size() > kKeyCharsMax) {
    return denied(fmt::format("{}: want {} to {} characters", kInstanceKeyHeader, kKeyCharsMin,
                              kKeyCharsMax));
  }
  const std::string hash = net::sha256_hex(key);
  const std::lock_guard lock(mutex_);
  const auto known = keys_.find(id);
  if (known != keys_.end()) {
    if (net::equal_in_constant_time(known->second, hash)) return id;
    return denied(
        fmt::format("instance {} has joined with another key: this is not its agent, or its data "
                    "folder was lost; `cotenant token forget {}` lets it join anew",
                    id, id));
  }
  if (!trusted) {
    const std::string_view header = ports::header_value(request.headers, "Authorization");
    if (header.substr(0, kBearer.size()) != kBearer) {
      return denied(
          "an agent that has not joined yet needs a join token: make one with `cotenant token "
          "create` and start the agent with --join-token-file");
    }
    if (auto status = check_token(header.substr(kBearer.size())); !status) {
      return fail(status.error());
    }
  }
  if (keys_.size() >= base::limits::kAgentKeys) {
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{} agents have joined, which is the limit", keys_.size()));
  }
  keys_[id] = hash;
  if (auto status = save(); !status) {
    keys_.erase(id);
    return fail(status.error());
  }
  base::log::info("agent of instance {} has joined", id);
  return id;
}

}  // namespace cotenant::server
