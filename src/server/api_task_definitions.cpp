// RegisterTaskDefinition, DescribeTaskDefinition, ListTaskDefinitions.
#include <fmt/format.h>

#include <algorithm>

#include "codec/ecs_request.h"
#include "codec/ecs_response.h"
#include "server/api_functions.h"
#include "server/paging.h"

namespace cotenant::server::api {
namespace {

// Tags are shown beside the definition, and only where they are asked for.
Json take_tags(Json& definition) {
  Json tags = Json::array();
  Json::Object& members = definition.as_object();
  const auto found = std::find_if(members.begin(), members.end(),
                                  [](const Json::Member& member) { return member.name == "tags"; });
  if (found != members.end()) {
    tags = found->value;
    members.erase(found);
  }
  return tags;
}

Json encode_reply(const ApiContext& context, const core::TaskDefinition& definition,
                  bool with_tags) {
  Json json = codec::encode_task_definition(context.arns, definition);
  Json tags = take_tags(json);
  Json reply = Json::object({{"taskDefinition", std::move(json)}});
  if (with_tags) reply.set("tags", std::move(tags));
  return reply;
}

bool includes_tags(const Json& body) {
  const Json::Array& include = body.array_or_empty("include");
  return std::any_of(include.begin(), include.end(),
                     [](const Json& item) { return item.is_string() && item.as_string() == "TAGS"; });
}

// The key that orders ListTaskDefinitions: family, then revision as a number.
std::string list_key(const std::string& family, std::int64_t revision) {
  return fmt::format("{}:{:010}", family, revision);
}

using Definitions = std::map<std::string, std::pair<std::string, std::int64_t>>;

}  // namespace

Result<ApiReply> register_task_definition(const ApiContext& context, const Json& body) {
  auto decoded = codec::decode_register_task_definition(body);
  if (!decoded) return base::fail(decoded.error());
  auto definition = context.loop.apply<core::TaskDefinitionPtr>(
      decoded->value, [](const core::Reply& reply, const core::State& state) {
        const auto& registered = std::get<core::TaskDefinitionReply>(reply);
        return core::find_definition(state, registered.family, registered.revision);
      });
  if (!definition) return base::fail(definition.error());
  return ApiReply{encode_reply(context, **definition, body.find("tags") != nullptr),
                  decoded->warnings};
}

Result<ApiReply> describe_task_definition(const ApiContext& context, const Json& body) {
  auto ref = base::parse_task_definition_ref(body.string_or("taskDefinition", ""));
  if (!ref) {
    return base::fail(ref.error().code, "taskDefinition: " + ref.error().message);
  }
  auto definition = context.loop.read<core::TaskDefinitionPtr>([&](const core::State& state) {
    return ref->revision ? core::find_definition(state, ref->family, *ref->revision)
                         : core::latest_definition(state, ref->family);
  });
  if (!definition) return base::fail(definition.error());
  if (*definition == nullptr) {
    return base::fail(base::ErrorCode::kClient,
                      fmt::format("taskDefinition: Unable to describe task definition '{}': it is not "
                                  "registered",
                                  body.string_or("taskDefinition", "")));
  }
  return ApiReply{encode_reply(context, **definition, includes_tags(body)),
                  (*definition)->warnings};
}

Result<ApiReply> list_task_definitions(const ApiContext& context, const Json& body) {
  auto page = codec::decode_page(body);
  if (!page) return base::fail(page.error());
  const std::string family = body.string_or("familyPrefix", "");
  // All are ACTIVE until DeregisterTaskDefinition is offered.
  const bool none = body.string_or("status", "ACTIVE") != "ACTIVE";
  const bool descending = body.string_or("sort", "ASC") == "DESC";

  Definitions wanted;
  auto status = context.loop.read<bool>([&](const core::State& state) {
    for (const auto& [name, entry] : state.families) {
      if (none || (!family.empty() && name != family)) continue;
      for (const auto& [revision, definition] : entry.revisions) {
        wanted.emplace(list_key(name, revision), std::make_pair(name, revision));
      }
    }
    return true;
  });
  if (!status) return base::fail(status.error());

  std::vector<std::string> keys;
  for (const auto& [key, id] : wanted) keys.push_back(key);
  if (descending) std::reverse(keys.begin(), keys.end());
  auto at = keys.begin();
  if (!page->after.empty()) {
    at = std::find(keys.begin(), keys.end(), page->after);
    if (at != keys.end()) ++at;
  }
  Json arns = Json::array();
  std::string next_token;
  for (; at != keys.end(); ++at) {
    if (arns.as_array().size() == page->max_results) {
      next_token = codec::encode_page_token(*std::prev(at));
      break;
    }
    const auto& [name, revision] = wanted.at(*at);
    arns.push(context.arns.task_definition(name, revision));
  }
  Json reply = Json::object({{"taskDefinitionArns", std::move(arns)}});
  if (!next_token.empty()) reply.set("nextToken", next_token);
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
