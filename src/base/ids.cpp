#include "base/ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/limits.h"

namespace cotenant::base {
namespace {

constexpr std::string_view kArnStart = "arn:";

// The part after the fifth colon: "<type>/<rest>". Nothing where the text is not an ECS ARN.
std::optional<std::string_view> arn_resource(std::string_view text) {
  for (int colon = 0; colon < 5; ++colon) {
    const std::size_t at = text.find(':');
    if (at == std::string_view::npos) return std::nullopt;
    if (colon == 2 && text.substr(0, at) != "ecs") return std::nullopt;
    text.remove_prefix(at + 1);
  }
  return text;
}

}  // namespace

ArnFormat::ArnFormat(std::string region, std::string account_id)
    : prefix_(fmt::format("arn:aws:ecs:{}:{}:", region, account_id)) {}

std::string ArnFormat::cluster(std::string_view name) const {
  return fmt::format("{}cluster/{}", prefix_, name);
}

std::string ArnFormat::task(std::string_view cluster, std::string_view id) const {
  return fmt::format("{}task/{}/{}", prefix_, cluster, id);
}

std::string ArnFormat::container_instance(std::string_view cluster, std::string_view id) const {
  return fmt::format("{}container-instance/{}/{}", prefix_, cluster, id);
}

std::string ArnFormat::container(std::string_view cluster, std::string_view task_id,
                                 std::string_view container_id) const {
  return fmt::format("{}container/{}/{}/{}", prefix_, cluster, task_id, container_id);
}

std::string ArnFormat::task_definition(std::string_view family, std::int64_t revision) const {
  return fmt::format("{}task-definition/{}:{}", prefix_, family, revision);
}

Result<ResourceRef> parse_resource_ref(std::string_view type, std::string_view text) {
  const auto invalid = [&] {
    return fail(ErrorCode::kInvalidParameter,
                fmt::format("'{}' is neither a {} name or id nor a {} ARN", text, type, type));
  };
  if (text.substr(0, kArnStart.size()) != kArnStart) {
    if (!is_ecs_name(text)) return invalid();
    return ResourceRef{std::string(text), std::nullopt};
  }
  const auto resource = arn_resource(text);
  if (!resource || resource->substr(0, type.size()) != type ||
      resource->substr(type.size(), 1) != "/") {
    return invalid();
  }
  std::string_view path = resource->substr(type.size() + 1);
  ResourceRef ref;
  // A cluster stands in no cluster.
  if (const std::size_t slash = path.find('/');
      slash != std::string_view::npos && type != "cluster") {
    ref.cluster = std::string(path.substr(0, slash));
    path.remove_prefix(slash + 1);
  }
  if (!is_ecs_name(path) || (ref.cluster && !is_ecs_name(*ref.cluster))) return invalid();
  ref.id = std::string(path);
  return ref;
}

Result<TaskDefinitionRef> parse_task_definition_ref(std::string_view text) {
  const auto invalid = [&] {
    return fail(
        ErrorCode::kInvalidParameter,
        fmt::format("'{}' is not a task definition: give family, family:revision or its ARN",
                    text));
  };
  std::string_view rest = text;
  if (text.substr(0, kArnStart.size()) == kArnStart) {
    constexpr std::string_view kType = "task-definition/";
    const auto resource = arn_resource(text);
    if (!resource || resource->substr(0, kType.size()) != kType) return invalid();
    rest = resource->substr(kType.size());
  }
  TaskDefinitionRef ref;
  if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
    const std::string_view digits = rest.substr(colon + 1);
    std::int64_t revision = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), revision);
    if (error != std::errc() || end != digits.data() + digits.size() || revision < 1) {
      return invalid();
    }
    ref.revision = revision;
    rest = rest.substr(0, colon);
  }
  if (!is_ecs_name(rest)) return invalid();
  ref.family = std::string(rest);
  return ref;
}

bool is_ecs_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !text.empty() && text.size() <= limits::kNameChars &&
         std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace cotenant::base
