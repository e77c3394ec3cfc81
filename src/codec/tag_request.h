// Tags, TagResource, UntagResource, ListTagsForResource, and account settings: bodies to core.
#pragma once

#include <string>

#include "base/result.h"
#include "codec/ecs_request.h"
#include "codec/json.h"
#include "core/command.h"

namespace cotenant::codec {

// The `tags` member. Errors: kInvalidParameter (no key, a key twice, a key of the platform).
base::Result<core::Tags> decode_tags(const Json& body);

// `resourceArn`: what it names, and the cluster that an ARN of a task or an instance names.
struct TaggedResource {
  core::RecordRef resource;
  std::string cluster;
};
base::Result<TaggedResource> decode_tagged_resource(const Json& body);

base::Result<core::TagResource> decode_tag_resource(const Json& body);
base::Result<core::TagResource> decode_untag_resource(const Json& body);

}  // namespace cotenant::codec
