// RegisterTaskDefinition, DescribeTaskDefinition, ListTaskDefinitions.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "codec/ecs_request.h"
#include "codec/ecs_response.h"
#include "server/api_functions.h"

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
  return std::any_of(include.begin(), include.end(), [](const Json& item) {
    return item.is_string() && item.as_string() == "TAGS";
  });
}

struct Name {
  std::string family;
  std::int64_t revision = 0;
};

struct NamePage {
  std::vector<Name> names;
  bool more = false;
};

// The names of one page, in the order of family, then revision, or in the reverse of that.
class Lister {
 public:
  Lister(std::size_t max, std::optional<Name> after) : max_(max), after_(std::move(after)) {}

  NamePage list(const core::State& state, const std::string& family, bool descending) {
    const auto& families = state.families;
    const std::string from = after_ ? after_->family : std::string();
    if (!family.empty()) {
      const auto only = families.find(family);
      if (only != families.end()) take(only->first, only->second, descending);
    } else if (descending) {
      auto at = after_ ? std::make_reverse_iterator(families.upper_bound(from)) : families.rbegin();
      for (; at != families.rend() && !page_.more; ++at) take(at->first, at->second, true);
    } else {
      auto at = families.lower_bound(from);
      for (; at != families.end() && !page_.more; ++at) take(at->first, at->second, false);
    }
    return std::move(page_);
  }

 private:
  void take(const std::string& family, const core::TaskDefinitionFamily& entry, bool descending) {
    const auto& revisions = entry.revisions;
    const bool resume = after_ && after_->family == family;
    if (descending) {
      auto at = resume ? std::make_reverse_iterator(revisions.lower_bound(after_->revision))
                       : revisions.rbegin();
      for (; at != revisions.rend() && add(family, at->first); ++at) {
      }
    } else {
      auto at = resume ? revisions.upper_bound(after_->revision) : revisions.begin();
      for (; at != revisions.end() && add(family, at->first); ++at) {
      }
    }
  }

  // False when the page is full.
  bool add(const std::string& family, std::int64_t revision) {
    page_.more = page_.names.size() == max_;
    if (!page_.more) page_.names.push_back({family, revision});
    return !page_.more;
  }

  std::size_t max_;
  std::optional<Name> after_;
  NamePage page_;
};

Result<std::optional<Name>> decode_after(const codec::Page& page) {
  if (page.after.empty()) return std::optional<Name>{};
  auto ref = base::parse_task_definition_ref(page.after);
  if (ref && ref->revision) return std::optional<Name>(Name{ref->family, *ref->revision});
  return base::fail(base::ErrorCode::kInvalidParameter,
                    "nextToken: is not a token that this server gave; start without one");
}

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
    return base::fail(
        base::ErrorCode::kClient,
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
  auto after = decode_after(*page);
  if (!after) return base::fail(after.error());

  auto listed = context.loop.read<NamePage>([&](const core::State& state) {
    if (none) return NamePage{};
    return Lister(page->max_results, *after).list(state, family, descending);
  });
  if (!listed) return base::fail(listed.error());
  Json arns = Json::array();
  for (const Name& name : listed->names) {
    arns.push(context.arns.task_definition(name.family, name.revision));
  }
  Json reply = Json::object({{"taskDefinitionArns", std::move(arns)}});
  if (listed->more) {
    const Name& last = listed->names.back();
    reply.set("nextToken",
              codec::encode_page_token(fmt::format("{}:{}", last.family, last.revision)));
  }
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
