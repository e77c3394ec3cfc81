// CreateJoinToken, ListJoinTokens, RevokeJoinToken and ForgetAgent: cotenant's own, which ECS does
// not have.
#include <fmt/format.h>

#include <string>

#include "server/agent_access.h"
#include "server/agent_hub.h"
#include "server/api_functions.h"

namespace cotenant::server::api {
namespace {

constexpr std::int64_t kTokenSecondsDefault = 24 * 3600;

// Errors: kUnsupportedFeature, this control plane was started without them.
Result<AgentAccess*> require_agents(const ApiContext& context) {
  if (context.agents != nullptr) return context.agents;
  return base::fail(base::ErrorCode::kUnsupportedFeature,
                    "join tokens: this control plane keeps none");
}

Result<std::string> require_string(const Json& body, std::string_view name) {
  const Json* const value = body.find(name);
  if (value != nullptr && value->is_string() && !value->as_string().empty()) {
    return value->as_string();
  }
  return base::fail(base::ErrorCode::kInvalidParameter,
                    fmt::format("{}: want a string that is not empty", name));
}

Json token_json(const JoinToken& token) {
  return Json::object({{"id", token.id},
                       {"createdAt", static_cast<double>(token.created_ms) / 1000.0},
                       {"expiresAt", static_cast<double>(token.expires_ms) / 1000.0}});
}

}  // namespace

Result<ApiReply> create_join_token(const ApiContext& context, const Json& body) {
  auto agents = require_agents(context);
  if (!agents) return base::fail(agents.error());
  const Json* const life = body.find("expiresInSeconds");
  if (life != nullptr && !life->is_integer()) {
    return base::fail(base::ErrorCode::kInvalidParameter, "expiresInSeconds: want an integer");
  }
  auto made = (*agents)->create_token(life == nullptr ? kTokenSecondsDefault : life->as_integer());
  if (!made) return base::fail(made.error());
  Json token = token_json(made->token);
  token.set("token", made->secret);
  return ApiReply{Json::object({{"joinToken", token}}), {}};
}

Result<ApiReply> list_join_tokens(const ApiContext& context, const Json&) {
  auto agents = require_agents(context);
  if (!agents) return base::fail(agents.error());
  Json tokens = Json::array();
  for (const JoinToken& token : (*agents)->tokens()) tokens.push(token_json(token));
  return ApiReply{Json::object({{"joinTokens", tokens}}), {}};
}

Result<ApiReply> revoke_join_token(const ApiContext& context, const Json& body) {
  auto agents = require_agents(context);
  if (!agents) return base::fail(agents.error());
  auto id = require_string(body, "id");
  if (!id) return base::fail(id.error());
  if (auto status = (*agents)->revoke_token(*id); !status) return base::fail(status.error());
  return ApiReply{Json::object(), {}};
}

Result<ApiReply> forget_agent(const ApiContext& context, const Json& body) {
  auto agents = require_agents(context);
  if (!agents) return base::fail(agents.error());
  auto id = require_string(body, "containerInstance");
  if (!id) return base::fail(id.error());
  // An ARN ends with the id.
  const std::size_t slash = id->rfind('/');
  const std::string instance = slash == std::string::npos ? *id : id->substr(slash + 1);
  if (auto status = (*agents)->forget_instance(instance); !status) {
    return base::fail(status.error());
  }
  // The hub's table belongs to the loop's thread.
  auto closed = context.loop.read<bool>([&](const core::State&) {
    context.hub->close(instance, "its key was ended");
    return true;
  });
  if (!closed) return base::fail(closed.error());
  return ApiReply{Json::object(), {}};
}

}  // namespace cotenant::server::api
