// Which agents may connect: join tokens, and the key that each agent made for itself.
//
// An agent presents both at /agent/v1. The first time, a valid join token lets it in, and the hash
// of its key is kept with its instance id; from then on the key alone is enough, and nobody else can
// come as that instance. A token that has run out or was revoked therefore cuts off nobody who has
// joined; forget_instance() does. Tokens and keys are kept as SHA-256 hashes in one file (0600);
// both have 190 random bits or more, so that plain hashes cannot be searched.
//
// Any thread. Each change is durable when its call returns. Errors: kIo (the file), else as stated.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ports/http_message.h"

namespace cotenant::server {

inline constexpr const char* kInstanceIdHeader = "X-Cotenant-Instance";
inline constexpr const char* kInstanceKeyHeader = "X-Cotenant-Instance-Key";

struct JoinToken {
  std::string id;
  std::string hash;
  base::TimeMs created_ms = 0;
  base::TimeMs expires_ms = 0;
};

struct NewJoinToken {
  JoinToken token;
  std::string secret;  // what the agent is given; told this once
};

class AgentAccess {
 public:
  // The file may be absent. Errors: kIo, naming the file (also when it is damaged).
  static base::Result<std::unique_ptr<AgentAccess>> open(std::string path,
                                                         const base::Clock& clock);

  // Errors: kInvalidParameter (life out of bounds), kLimitExceeded.
  base::Result<NewJoinToken> create_token(std::int64_t life_s);
  // By id; those that have run out too, until the next one is made.
  std::vector<JoinToken> tokens() const;
  // Errors: kInvalidParameter, no such token.
  base::Status revoke_token(const std::string& id);
  // Its agent must join anew, with a token. Errors: kInvalidParameter, unknown instance.
  base::Status forget_instance(const std::string& instance_id);

  // Whether this request may open an agent's connection; `trusted`: no token is needed (a peer on
  // the unix socket, or authentication is off). The instance that it may be. Errors: kAccessDenied,
  // kExpiredToken.
  base::Result<std::string> admit(const ports::HttpRequest& request, bool trusted);

 private:
  AgentAccess(std::string path, const base::Clock& clock) : path_(std::move(path)), clock_(clock) {}

  base::Status load();
  base::Status save() const;
  base::Status check_token(std::string_view secret) const;

  const std::string path_;
  const base::Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, JoinToken> tokens_;
  std::map<std::string, std::string> keys_;  // instance id to the hash of its key
};

}  // namespace cotenant::server
