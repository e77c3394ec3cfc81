// TagResource, UntagResource, ListTagsForResource.
#include <optional>
#include <utility>

#include "codec/tag_request.h"
#include "codec/task_json.h"
#include "server/api_functions.h"

namespace cotenant::server::api {
namespace {

Result<ApiReply> change_tags(const ApiContext& context, Result<core::TagResource> command) {
  if (!command) return base::fail(command.error());
  auto done = context.loop.apply<bool>(std::move(*command),
                                       [](const core::Reply&, const core::State&) { return true; });
  if (!done) return base::fail(done.error());
  return ApiReply{Json::object(), {}};
}

}  // namespace

Result<ApiReply> tag_resource(const ApiContext& context, const Json& body) {
  return change_tags(context, codec::decode_tag_resource(body));
}

Result<ApiReply> untag_resource(const ApiContext& context, const Json& body) {
  return change_tags(context, codec::decode_untag_resource(body));
}

Result<ApiReply> list_tags_for_resource(const ApiContext& context, const Json& body) {
  auto resource = codec::decode_tagged_resource(body);
  if (!resource) return base::fail(resource.error());
  auto tags = context.loop.read<std::optional<core::Tags>>(
      [&](const core::State& state) -> std::optional<core::Tags> {
        const core::Tags* found = core::find_tags(state, resource->resource, resource->cluster);
        if (found == nullptr) return std::nullopt;
        return *found;
      });
  if (!tags) return base::fail(tags.error());
  // ECS API reference: ListTagsForResource knows no ResourceNotFoundException.
  if (!*tags) {
    return base::fail(
        base::ErrorCode::kInvalidParameter,
        "resourceArn: The specified resource was not found; it may have been deleted");
  }
  return ApiReply{Json::object({{"tags", codec::encode_tags(**tags)}}), {}};
}

}  // namespace cotenant::server::api
