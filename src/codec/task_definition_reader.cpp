#include "codec/task_definition_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "base/ids.h"
#include "codec/api_schema.h"
#include "codec/ecs_request.h"
#include "codec/settings_json.h"
#include "codec/tag_request.h"
#include "codec/task_json.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

tl::unexpected<base::Error> unreadable(std::string_view member, std::string_view text) {
  return fail(ErrorCode::kProtocol, fmt::format("{}: {}", member, text));
}

std::string text_member(const Json& json, std::string_view member) {
  const Json* value = json.find(member);
  return value != nullptr && value->is_string() ? value->as_string() : std::string();
}

std::optional<std::int64_t> number_member(const Json& json, std::string_view member) {
  const Json* value = json.find(member);
  if (value == nullptr || !value->is_integer()) return std::nullopt;
  return value->as_integer();
}

// Nothing where it cannot be read: no GPU instead of one would change what the program does.
std::optional<core::GpuRequest> read_requirement(const Json& requirement) {
  const std::string value = text_member(requirement, "value");
  if (value == "ALL") return core::WholeGpus{0, true};
  if (!value.empty()) {
    int count = 0;
    const char* end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, count);
    if (error != std::errc() || stop != end || count < 1) return std::nullopt;
    return core::WholeGpus{count, false};
  }
  const Json* strategy = requirement.find("sharingStrategy");
  const Json* mps = strategy == nullptr ? nullptr : strategy->find("nvidiaMps");
  const auto memory_mib = mps == nullptr ? std::nullopt : number_member(*mps, "memory");
  if (!memory_mib || *memory_mib < 1) return std::nullopt;
  core::SharedGpu shared{*memory_mib, std::nullopt};
  const auto percent = number_member(*mps, "maxComputePercent");
  if (percent && *percent > 0 && *percent <= 100)
    shared.compute_percent = static_cast<int>(*percent);
  return shared;
}

base::Result<core::ContainerDefinition> read_container(const Json& json, const std::string& path) {
  core::ContainerDefinition container;
  container.name = text_member(json, "name");
  if (!base::is_ecs_name(container.name)) return unreadable(path + ".name", "is not a name");
  container.image = text_member(json, "image");
  container.cpu_units = std::max<std::int64_t>(0, number_member(json, "cpu").value_or(0));
  container.memory_mib = number_member(json, "memory");
  container.memory_reservation_mib = number_member(json, "memoryReservation");
  const Json* essential = json.find("essential");
  container.essential = essential == nullptr || !essential->is_bool() || essential->as_bool();
  container.entry_point = decode_strings(json.array_or_empty("entryPoint"));
  container.command = decode_strings(json.array_or_empty("command"));
  for (const Json& pair : json.array_or_empty("environment")) {
    container.environment.push_back({text_member(pair, "name"), text_member(pair, "value")});
  }
  container.working_directory = text_member(json, "workingDirectory");
  container.stop_timeout_s = number_member(json, "stopTimeout");
  if (const Json* labels = json.find("dockerLabels"); labels != nullptr && labels->is_object()) {
    for (const Json::Member& label : labels->as_object()) {
      if (label.value.is_string()) container.docker_labels[label.name] = label.value.as_string();
    }
  }
  const Json::Array& requirements = json.array_or_empty("resourceRequirements");
  if (!requirements.empty()) {
    const auto gpu = read_requirement(requirements.front());
    if (!gpu) return unreadable(path + ".resourceRequirements[0]", "is no request for a GPU");
    container.gpu = *gpu;
  }
  read_container_settings(json, container);
  return container;
}

// An expression that this version does not understand any more selects nothing: the task stays where it
// is, and a new one is refused by its constraint.
std::vector<core::Query> read_member_of(const Json::Array& constraints) {
  static const core::Query kNothing = *core::Query::parse("runningTasksCount < 0");
  std::vector<core::Query> member_of;
  for (const Json& constraint : constraints) {
    auto query = core::Query::parse(text_member(constraint, "expression"));
    member_of.push_back(query ? std::move(*query) : kNothing);
  }
  return member_of;
}

}  // namespace

base::Result<core::TaskDefinition> read_task_definition(const Json& document) {
  core::TaskDefinition definition;
  definition.family = text_member(document, "family");
  if (!base::is_ecs_name(definition.family)) return unreadable("family", "is not a name");
  definition.network_mode = core::parse_network_mode(text_member(document, "networkMode"))
                                .value_or(core::NetworkMode::kBridge);
  definition.settings = read_task_settings(document);
  definition.member_of = read_member_of(document.array_or_empty("placementConstraints"));
  std::set<std::string> names;
  const Json::Array& containers = document.array_or_empty("containerDefinitions");
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string path = fmt::format("containerDefinitions[{}]", i);
    auto container = read_container(containers[i], path);
    if (!container) return fail(container.error());
    if (!names.insert(container->name).second) {
      return unreadable(path + ".name", fmt::format("'{}' stands twice", container->name));
    }
    definition.containers.push_back(std::move(*container));
  }
  if (names.empty()) return unreadable("containerDefinitions", "has no container");
  return definition;
}

base::Result<core::TaskDefinition> read_stored_definition(const std::string& document) {
  const auto body = Json::parse(document);
  if (!body) return unreadable("document", body.error().message);
  auto definition = read_task_definition(*body);
  if (!definition) return unreadable("document", definition.error().message);
  const core::TaskGpuNeed need = core::task_need(*definition).gpu;
  if (need.is_shared() && need.is_whole()) {
    return unreadable("document: containerDefinitions",
                      "asks for a share of a GPU and for whole GPUs");
  }
  definition->document = document;
  if (auto tags = decode_tags(*body)) definition->tags = std::move(*tags);
  base::Status accepted;
  if (auto status = check_input(*find_operation("RegisterTaskDefinition"), *body); !status) {
    accepted = fail(status.error());
  } else if (auto decoded = decode_register_task_definition(*body); !decoded) {
    accepted = fail(decoded.error());
  } else {
    definition->warnings = std::move(decoded->warnings);
  }
  if (!accepted) {
    definition->warnings.push_back(
        fmt::format("registered before a rule that this version has, and kept as it is: {}",
                    accepted.error().message));
  }
  return definition;
}

}  // namespace cotenant::codec
