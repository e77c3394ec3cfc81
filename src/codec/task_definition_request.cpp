// RegisterTaskDefinition: the document that people write, to the definition that the core runs.
#include <fmt/format.h>

#include <set>

#include "base/ids.h"
#include "base/limits.h"
#include "codec/api_schema.h"
#include "codec/ecs_request.h"
#include "codec/gpu_rules.h"
#include "codec/invalid.h"
#include "codec/member_verdicts.h"
#include "codec/no_nul.h"
#include "codec/placement_request.h"
#include "codec/tag_request.h"
#include "codec/task_definition_reader.h"
#include "codec/task_definition_rules.h"
#include "codec/task_json.h"
#include "core/tenant_rules.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

base::Status check_environment(const Json& json, const std::string& path) {
  std::set<std::string> seen;
  const Json::Array& list = json.array_or_empty("environment");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = list[i].string_or("name", "");
    const std::string member = fmt::format("{}environment[{}].name", path, i);
    if (name.empty() || name.find('=') != std::string::npos) {
      return invalid(member, "must be a variable's name, without '='");
    }
    if (!seen.insert(name).second) {
      return invalid(member, fmt::format("'{}' stands twice; keep one", name));
    }
  }
  return {};
}

base::Status check_memory(const Json& json, const std::string& path, bool task_memory) {
  const Json* memory = json.find("memory");
  const Json* reservation = json.find("memoryReservation");
  if (memory == nullptr && reservation == nullptr && !task_memory) {
    return invalid(path + "memory",
                   fmt::format("container '{}' has neither memory nor memoryReservation; give at "
                               "least one, in MiB",
                               json.string_or("name", "")));
  }
  if (memory != nullptr && reservation != nullptr &&
      reservation->as_integer() > memory->as_integer()) {
    return invalid(path + "memoryReservation",
                   fmt::format("{} MiB is more than memory, {} MiB; it must not be",
                               reservation->as_integer(), memory->as_integer()));
  }
  return {};
}

base::Status check_container(const Json& json, const std::string& path, bool task_memory,
                             std::vector<std::string>& warnings) {
  if (auto status = check_no_nul(json, path.substr(0, path.size() - 1)); !status) return status;
  if (auto status = apply_verdicts(container_definition_members(), json, path, warnings); !status) {
    return status;
  }
  if (!base::is_ecs_name(json.string_or("name", ""))) {
    return invalid(path + "name", "is required: 1 to 255 letters, digits, hyphens and underscores");
  }
  const std::string image = json.string_or("image", "");
  if (image.empty()) return invalid(path + "image", "is required: the image to run");
  if (image.find_first_of(" \t\r\n") != std::string::npos) {
    return invalid(path + "image", "must be an image's name, without blanks");
  }
  if (json.integer_or("cpu", 0) < 0) return invalid(path + "cpu", "must not be negative");
  const std::string directory = json.string_or("workingDirectory", "");
  if (!directory.empty() && directory.front() != '/') {
    return invalid(path + "workingDirectory", "must be an absolute path");
  }
  if (const Json* labels = json.find("dockerLabels")) {
    for (const Json::Member& label : labels->as_object()) {
      if (label.name.rfind("cotenant.", 0) != 0) continue;
      return invalid(path + "dockerLabels",
                     fmt::format("'{}' begins with 'cotenant.', which is cotenant's own; rename it",
                                 label.name));
    }
  }
  if (auto status = check_environment(json, path); !status) return status;
  if (auto status = check_memory(json, path, task_memory); !status) return status;
  if (const Json* requirements = json.find("resourceRequirements")) {
    auto gpu = decode_gpu_request(*requirements, path + "resourceRequirements");
    if (!gpu) return fail(gpu.error());
  }
  return {};
}

base::Status check_compatibilities(const std::vector<std::string>& compatibilities,
                                   std::vector<std::string>& warnings) {
  bool fargate_only = !compatibilities.empty();
  for (const std::string& launch : compatibilities) {
    fargate_only = fargate_only && launch == "FARGATE";
    warnings.push_back(fmt::format(
        "requiresCompatibilities: {} is stored and shown; tasks run on the cluster's own "
        "container instances",
        launch));
  }
  if (!fargate_only) return {};
  return fail(ErrorCode::kUnsupportedFeature,
              "requiresCompatibilities: FARGATE is not offered: tasks run on the cluster's own "
              "container instances; use EC2 or leave it out");
}

base::Status check_network_mode(const Json& body) {
  const std::string text = body.string_or("networkMode", "bridge");
  if (core::parse_network_mode(text)) return {};
  return fail(
      ErrorCode::kUnsupportedFeature,
      fmt::format("networkMode: {} is not carried out; use bridge, host, none or awsvpc", text));
}

// The value with only the members that ECS's model has, at every depth.
Json known_members(const Shape& shape, const Json& value) {
  if (shape.kind == ShapeKind::kList) {
    Json list = Json::array();
    for (const Json& item : value.as_array()) {
      list.push(known_members(api_shapes()[shape.element], item));
    }
    return list;
  }
  if (shape.kind != ShapeKind::kStructure && shape.kind != ShapeKind::kUnion) return value;
  Json known = Json::object();
  for (const Json::Member& given : value.as_object()) {
    if (given.value.is_null()) continue;
    for (const ShapeMember& member : shape.members) {
      if (member.name != given.name) continue;
      known.set(given.name, known_members(api_shapes()[member.shape], given.value));
    }
  }
  return known;
}

// What is shown again: the members that ECS knows, with the defaults that ECS fills in.
std::string document_text(const Json& body) {
  const Operation* operation = find_operation("RegisterTaskDefinition");
  Json document = known_members(api_shapes()[operation->input], body);
  Json containers = Json::array();
  for (Json container : document.array_or_empty("containerDefinitions")) {
    if (container.find("cpu") == nullptr) container.set("cpu", 0);
    if (container.find("essential") == nullptr) container.set("essential", true);
    for (const std::string_view list :
         {"environment", "mountPoints", "portMappings", "volumesFrom"}) {
      if (container.find(list) == nullptr) container.set(list, Json::array());
    }
    containers.push(std::move(container));
  }
  document.set("containerDefinitions", std::move(containers));
  for (const std::string_view list : {"volumes", "placementConstraints"}) {
    if (document.find(list) == nullptr) document.set(list, Json::array());
  }
  return document.dump();
}

}  // namespace

base::Result<Decoded<core::RegisterTaskDefinition>> decode_register_task_definition(
    const Json& body) {
  Decoded<core::RegisterTaskDefinition> decoded;
  if (auto status = apply_verdicts(task_definition_members(), body, "", decoded.warnings);
      !status) {
    return fail(status.error());
  }
  if (!base::is_ecs_name(body.string_or("family", ""))) {
    return invalid("family", "must be 1 to 255 letters, digits, hyphens and underscores");
  }
  if (auto status = check_network_mode(body); !status) return fail(status.error());

  const Json::Array& containers = body.array_or_empty("containerDefinitions");
  if (containers.empty() || containers.size() > base::limits::kContainersPerTask) {
    return invalid("containerDefinitions",
                   fmt::format("must have from 1 to {} containers, not {}",
                               base::limits::kContainersPerTask, containers.size()));
  }
  const bool task_memory = !body.string_or("memory", "").empty();
  std::set<std::string> names;
  bool any_essential = false;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string path = fmt::format("containerDefinitions[{}].", i);
    if (auto status = check_container(containers[i], path, task_memory, decoded.warnings);
        !status) {
      return fail(status.error());
    }
    const std::string name = containers[i].string_or("name", "");
    if (!names.insert(name).second) {
      return invalid(path + "name",
                     fmt::format("'{}' stands twice; names are unique in a task", name));
    }
    any_essential = any_essential || containers[i].bool_or("essential", true);
  }
  if (!any_essential) {
    return invalid("containerDefinitions", "at least one container must be essential");
  }

  core::PlacementRules constraints;
  if (auto status = decode_placement_constraints(body.array_or_empty("placementConstraints"), false,
                                                 constraints);
      !status) {
    return fail(status.error());
  }
  auto read = read_task_definition(body);
  if (!read) return fail(read.error());
  core::TaskDefinition& definition = decoded.value.definition;
  definition = std::move(*read);
  const std::vector<std::string> compatibilities =
      decode_strings(body.array_or_empty("requiresCompatibilities"));
  auto gpu_warnings = check_task_gpu_rules(definition, compatibilities);
  if (!gpu_warnings) return fail(gpu_warnings.error());
  if (auto status = check_compatibilities(compatibilities, decoded.warnings); !status) {
    return fail(status.error());
  }
  if (auto status = check_task_settings(body, definition, decoded.warnings); !status) {
    return fail(status.error());
  }
  if (core::task_need(definition).gpu.is_shared()) {
    if (auto status = core::check_tenant(definition); !status) return fail(status.error());
  }
  decoded.warnings.insert(decoded.warnings.end(), gpu_warnings->begin(), gpu_warnings->end());

  auto tags = decode_tags(body);
  if (!tags) return fail(tags.error());
  definition.tags = std::move(*tags);

  // Its size was bounded as it came (api_bounds.cpp); the defaults that are shown beside do not count.
  definition.document = document_text(body);
  definition.warnings = decoded.warnings;
  return decoded;
}

}  // namespace cotenant::codec
