#include "codec/attribute_request.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "codec/ecs_response.h"
#include "codec/invalid.h"

namespace cotenant::codec {
namespace {

constexpr std::string_view kTargetType = "container-instance";
constexpr std::array<std::string_view, 3> kReservedPrefixes = {"ecs.", "com.amazonaws.",
                                                               "cotenant."};

base::Result<core::TargetAttribute> decode_target_attribute(const Json& json,
                                                            const std::string& cluster,
                                                            const std::string& path) {
  core::TargetAttribute attribute;
  attribute.name = json.string_or("name", "");
  attribute.value = json.string_or("value", "");
  for (const std::string_view prefix : kReservedPrefixes) {
    if (attribute.name.starts_with(prefix)) {
      return invalid(
          path + ".name",
          fmt::format("names that begin with '{}' are the platform's; choose another", prefix));
    }
  }
  if (attribute.value.starts_with(' ') || attribute.value.ends_with(' ')) {
    return invalid(path + ".value", "must not begin or end with a blank");
  }
  const std::string target = json.string_or("targetId", "");
  if (target.empty()) {
    return invalid(path + ".targetId", "is required: a container instance's id or ARN");
  }
  auto ref = base::parse_resource_ref(kTargetType, target);
  if (!ref) return invalid(path + ".targetId", ref.error().message);
  if (ref->cluster && *ref->cluster != cluster) {
    return invalid(path + ".targetId",
                   fmt::format("is in the cluster '{}', not in '{}'", *ref->cluster, cluster));
  }
  attribute.instance_id = ref->id;
  return attribute;
}

template <class Command>
base::Result<Command> decode_attributes(const Json& body) {
  auto cluster = decode_cluster(body);
  if (!cluster) return base::fail(cluster.error());
  Command command;
  command.cluster = *cluster;
  const Json::Array& list = body.array_or_empty("attributes");
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto attribute = decode_target_attribute(list[i], *cluster, fmt::format("attributes[{}]", i));
    if (!attribute) return base::fail(attribute.error());
    command.attributes.push_back(std::move(*attribute));
  }
  return command;
}

}  // namespace

base::Result<core::PutAttributes> decode_put_attributes(const Json& body) {
  return decode_attributes<core::PutAttributes>(body);
}

base::Result<core::DeleteAttributes> decode_delete_attributes(const Json& body) {
  return decode_attributes<core::DeleteAttributes>(body);
}

base::Result<ListAttributesQuery> decode_list_attributes(const Json& body) {
  auto cluster = decode_cluster(body);
  if (!cluster) return base::fail(cluster.error());
  auto page = decode_page(body);
  if (!page) return base::fail(page.error());
  ListAttributesQuery query;
  query.cluster = std::move(*cluster);
  query.page = std::move(*page);
  query.name = body.string_or("attributeName", "");
  if (const Json* value = body.find("attributeValue"); value != nullptr && value->is_string()) {
    if (query.name.empty()) {
      return invalid("attributeValue", "needs attributeName: which attribute has this value");
    }
    query.value = value->as_string();
  }
  return query;
}

std::string attribute_key(const std::string& instance_id, const std::string& name) {
  return instance_id + "\n" + name;
}

Json encode_target_attribute(const base::ArnFormat& arns, const std::string& cluster,
                             const core::TargetAttribute& attribute) {
  Json json = encode_attribute(attribute.name, attribute.value);
  json.set("targetType", kTargetType)
      .set("targetId", arns.container_instance(cluster, attribute.instance_id));
  return json;
}

}  // namespace cotenant::codec
