// PutAttributes, DeleteAttributes, ListAttributes.
#include <utility>

#include "codec/attribute_request.h"
#include "server/api_functions.h"

namespace cotenant::server::api {
namespace {

Json encode_targets(const ApiContext& context, const std::string& cluster,
                    const std::vector<core::TargetAttribute>& attributes) {
  Json list = Json::array();
  for (const core::TargetAttribute& attribute : attributes) {
    list.push(codec::encode_target_attribute(context.arns, cluster, attribute));
  }
  return list;
}

// Both answer with the attributes that they were given.
template <class Command>
Result<ApiReply> change_attributes(const ApiContext& context, const Command& command) {
  auto done = context.loop.apply<bool>(command,
                                       [](const core::Reply&, const core::State&) { return true; });
  if (!done) return base::fail(done.error());
  return ApiReply{
      Json::object({{"attributes", encode_targets(context, command.cluster, command.attributes)}}),
      {}};
}

struct AttributePage {
  base::Status status;
  std::vector<core::TargetAttribute> attributes;
  std::string next_token;
};

// Pages of (instance, name), in that order.
AttributePage list_page(const core::State& state, const codec::ListAttributesQuery& query) {
  AttributePage page;
  page.status = core::require_cluster(state, query.cluster);
  if (!page.status) return page;
  const std::string from = query.page.after.substr(0, query.page.after.find('\n'));
  for (auto at = state.instances.lower_bound(from); at != state.instances.end(); ++at) {
    if (at->second.registration.cluster != query.cluster) continue;
    for (const auto& [name, value] : at->second.all_attributes()) {
      if (!query.name.empty() && name != query.name) continue;
      if (query.value && value != *query.value) continue;
      if (codec::attribute_key(at->first, name) <= query.page.after) continue;
      if (page.attributes.size() == query.page.max_results) {
        const core::TargetAttribute& last = page.attributes.back();
        page.next_token =
            codec::encode_page_token(codec::attribute_key(last.instance_id, last.name));
        return page;
      }
      page.attributes.push_back({at->first, name, value});
    }
  }
  return page;
}

}  // namespace

Result<ApiReply> put_attributes(const ApiContext& context, const Json& body) {
  auto command = codec::decode_put_attributes(body);
  if (!command) return base::fail(command.error());
  return change_attributes(context, *command);
}

Result<ApiReply> delete_attributes(const ApiContext& context, const Json& body) {
  auto command = codec::decode_delete_attributes(body);
  if (!command) return base::fail(command.error());
  return change_attributes(context, *command);
}

Result<ApiReply> list_attributes(const ApiContext& context, const Json& body) {
  auto query = codec::decode_list_attributes(body);
  if (!query) return base::fail(query.error());
  auto page = context.loop.read<AttributePage>(
      [&](const core::State& state) { return list_page(state, *query); });
  if (!page) return base::fail(page.error());
  if (!page->status) return base::fail(page->status.error());
  Json reply =
      Json::object({{"attributes", encode_targets(context, query->cluster, page->attributes)}});
  if (!page->next_token.empty()) reply.set("nextToken", page->next_token);
  return ApiReply{std::move(reply), {}};
}

}  // namespace cotenant::server::api
