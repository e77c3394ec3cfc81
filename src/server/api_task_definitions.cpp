// RegisterTaskDefinition, DescribeTaskDefinition, DeregisterTaskDefinition, DeleteTaskDefinitions,
// ListTaskDefinitions, ListTaskDefinitionFamilies.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "codec/ecs_request.h"
#include "codec/ecs_response.h"
#include "codec/task_json.h"
#include "server/api_functions.h"
#include "server/paging.h"

namespace cotenant::server::api {
namespace {

Json encode_reply(const ApiContext& context, const core::TaskDefinition& definition,
                  bool with_tags) {
  Json reply =
      Json::object({{"taskDefinition", codec::encode_task_definition(context.arns, definition)}});
  if (with_tags) reply.set("tags", codec::encode_tags(definition.tags));
  return reply;
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
  Lister(std::size_t max, std::optional<Name> after, core::TaskDefinitionStatus status)
      : max_(max), after_(std::move(after)), status_(status) {}

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
      for (; at != revisions.rend() && add(family, *at->second); ++at) {
      }
    } else {
      auto at = resume ? revisions.upper_bound(after_->revision) : revisions.begin();
      for (; at != revisions.end() && add(family, *at->second); ++at) {
      }
    }
  }

  // False when the page is full.
  bool add(const std::string& family, const core::TaskDefinition& definition) {
    if (definition.status != status_) return true;
    page_.more = page_.names.size() == max_;
    if (!page_.more) page_.names.push_back({family, definition.revision});
    return !page_.more;
  }

  std::size_t max_;
  std::optional<Name> after_;
  core::TaskDefinitionStatus status_;
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
  return ApiReply{encode_reply(context, **definition, codec::includes(body, "TAGS")),
                  (*definition)->warnings};
}

Result<ApiReply> list_task_definitions(const ApiContext& context, const Json& body) {
  auto page = codec::decode_page(body);
  if (!page) return base::fail(page.error());
  const std::string family = body.string_or("familyPrefix", "");
  const auto status = core::parse_task_definition_status(body.string_or("status", "ACTIVE"))
                          .value_or(core::TaskDefinitionStatus::kActive);
  const bool descending = body.string_or("sort", "ASC") == "DESC";
  auto after = decode_after(*page);
  if (!after) return base::fail(after.error());

  auto listed = context.loop.read<NamePage>([&](const core::State& state) {
    return Lister(page->max_results, *after, status).list(state, family, descending);
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

Result<ApiReply> deregister_task_definition(const ApiContext& context, const Json& body) {
  auto ref = codec::decode_revision(body.string_or("taskDefinition", ""), "taskDefinition");
  if (!ref) return base::fail(ref.error());
  auto definition = context.loop.apply<core::TaskDefinitionPtr>(
      core::DeregisterTaskDefinition{*ref}, [&](const core::Reply&, const core::State& state) {
        return core::find_definition(state, ref->family, *ref->revision);
      });
  if (!definition) return base::fail(definition.error());
  return ApiReply{encode_reply(context, **definition, false), {}};
}

Result<ApiReply> delete_task_definitions(const ApiContext& context, const Json& body) {
  core::DeleteTaskDefinitions command;
  const Json::Array& list = body.array_or_empty("taskDefinitions");
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto ref = codec::decode_revision(list[i].as_string(), fmt::format("taskDefinitions[{}]", i));
    if (!ref) return base::fail(ref.error());
    command.definitions.push_back(std::move(*ref));
  }
  struct Deleted {
    std::vector<core::TaskDefinitionPtr> definitions;  // null where it failed
    core::ItemsReply reply;
  };
  auto deleted =
      context.loop.apply<Deleted>(command, [&](const core::Reply& reply, const core::State& state) {
        Deleted result{{}, std::get<core::ItemsReply>(reply)};
        for (const base::TaskDefinitionRef& ref : command.definitions) {
          result.definitions.push_back(core::find_definition(state, ref.family, *ref.revision));
        }
        for (const auto& failure : result.reply.failures)
          result.definitions[failure.item] = nullptr;
        return result;
      });
  if (!deleted) return base::fail(deleted.error());
  Json definitions = Json::array();
  for (const core::TaskDefinitionPtr& definition : deleted->definitions) {
    if (definition == nullptr) continue;
    definitions.push(codec::encode_task_definition(context.arns, *definition));
  }
  Json failures = Json::array();
  for (const auto& failure : deleted->reply.failures) {
    const base::TaskDefinitionRef& ref = command.definitions[failure.item];
    failures.push(codec::encode_failure(context.arns.task_definition(ref.family, *ref.revision),
                                        failure.reason, failure.detail));
  }
  return ApiReply{Json::object({{"taskDefinitions", std::move(definitions)},
                                {"failures", std::move(failures)}}),
                  {}};
}

Result<ApiReply> list_task_definition_families(const ApiContext& context, const Json& body) {
  auto page = codec::decode_page(body);
  if (!page) return base::fail(page.error());
  const std::string prefix = body.string_or("familyPrefix", "");
  const std::string status = body.string_or("status", "ALL");
  auto names = context.loop.read<KeyPage>([&](const core::State& state) {
    return page_of(state.families, *page,
                   [&](const std::string& name, const core::TaskDefinitionFamily& family) {
                     if (name.rfind(prefix, 0) != 0 || family.revisions.empty()) return false;
                     if (status == "ALL") return true;
                     const bool active = core::latest_definition(state, name) != nullptr;
                     return active == (status == "ACTIVE");
                   });
  });
  if (!names) return base::fail(names.error());
  Json reply = Json::object({{"families", codec::encode_strings(names->keys)}});
  if (!names->next_token.empty()) reply.set("nextToken", names->next_token);
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
