#include "codec/tag_request.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "codec/invalid.h"
#include "codec/utf8.h"

namespace cotenant::codec {
namespace {

constexpr std::array<std::pair<std::string_view, core::RecordKind>, 3> kTaggedTypes = {{
    {"cluster", core::RecordKind::kCluster},
    {"container-instance", core::RecordKind::kInstance},
    {"task", core::RecordKind::kTask},
}};

// "<type>/..." of an ARN of ECS.
std::string_view arn_type(std::string_view arn) {
  const std::size_t colon = arn.rfind(':', arn.find('/'));
  if (colon == std::string_view::npos) return {};
  return arn.substr(colon + 1, arn.find('/') - colon - 1);
}

}  // namespace

base::Result<core::Tags> decode_tags(const Json& body) {
  core::Tags tags;
  const Json::Array& list = body.array_or_empty("tags");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string key = list[i].string_or("key", "");
    const std::string member = fmt::format("tags[{}].key", i);
    if (key.empty()) return invalid(member, "is required: a tag's name");
    if (core::is_platform_tag(key)) {
      return invalid(member,
                     fmt::format("'{}' begins with 'aws:', which only the platform may set; "
                                 "rename it",
                                 shortened(key)));
    }
    if (!tags.emplace(key, list[i].string_or("value", "")).second) {
      return invalid(member, fmt::format("'{}' stands twice; keep one", shortened(key)));
    }
  }
  return tags;
}

base::Result<TaggedResource> decode_tagged_resource(const Json& body) {
  const std::string arn = body.string_or("resourceArn", "");
  const auto wrong = [&] {
    return invalid(
        "resourceArn",
        fmt::format("'{}' is not the ARN of a cluster, task definition, container instance "
                    "or task of ECS",
                    shortened(arn)));
  };
  if (arn.rfind("arn:", 0) != 0) return wrong();
  const std::string_view type = arn_type(arn);
  if (type == "task-definition") {
    auto ref = base::parse_task_definition_ref(arn);
    if (!ref || !ref->revision) return wrong();
    return TaggedResource{{core::RecordKind::kTaskDefinition, ref->family, *ref->revision}, ""};
  }
  for (const auto& [name, kind] : kTaggedTypes) {
    if (name != type) continue;
    auto ref = base::parse_resource_ref(name, arn);
    if (!ref || (kind != core::RecordKind::kCluster && !ref->cluster)) return wrong();
    return TaggedResource{{kind, ref->id}, ref->cluster.value_or(ref->id)};
  }
  return wrong();
}

base::Result<core::TagResource> decode_tag_resource(const Json& body) {
  auto resource = decode_tagged_resource(body);
  if (!resource) return base::fail(resource.error());
  auto tags = decode_tags(body);
  if (!tags) return base::fail(tags.error());
  return core::TagResource{resource->resource, resource->cluster, std::move(*tags), {}};
}

base::Result<core::TagResource> decode_untag_resource(const Json& body) {
  auto resource = decode_tagged_resource(body);
  if (!resource) return base::fail(resource.error());
  core::TagResource command{resource->resource, resource->cluster, {}, {}};
  const Json::Array& keys = body.array_or_empty("tagKeys");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (core::is_platform_tag(keys[i].as_string())) {
      return invalid(fmt::format("tagKeys[{}]", i),
                     fmt::format("'{}' begins with 'aws:', which only the platform may remove",
                                 shortened(keys[i].as_string())));
    }
    command.removed_keys.push_back(keys[i].as_string());
  }
  return command;
}

}  // namespace cotenant::codec
