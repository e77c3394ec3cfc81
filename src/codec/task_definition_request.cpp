// RegisterTaskDefinition: the document that people write, to the definition that the core runs.
#include <fmt/format.h>

#include <set>

#include "base/limits.h"
#include "codec/api_schema.h"
#include "codec/ecs_request.h"
#include "codec/gpu_rules.h"
#include "codec/invalid.h"
#include "codec/member_verdicts.h"
#include "codec/no_nul.h"
#include "codec/tag_request.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

std::vector<std::string> strings(const Json& object, std::string_view member) {
  std::vector<std::string> list;
  for (const Json& item : object.array_or_empty(member)) list.push_back(item.as_string());
  return list;
}

std::optional<std::int64_t> optional_integer(const Json& object, std::string_view member) {
  const Json* value = object.find(member);
  if (value == nullptr) return std::nullopt;
  return value->as_integer();
}

base::Status decode_environment(const Json& json, const std::string& path,
                                std::vector<core::EnvironmentVariable>& environment) {
  std::set<std::string> seen;
  const Json::Array& list = json.array_or_empty("environment");
  for (std::size_t i = 0; i < list.size(); ++i) {
    core::EnvironmentVariable variable{list[i].string_or("name", ""),
                                       list[i].string_or("value", "")};
    const std::string member = fmt::format("{}environment[{}].name", path, i);
    if (variable.name.empty() || variable.name.find('=') != std::string::npos) {
      return invalid(member, "must be a variable's name, without '='");
    }
    if (!seen.insert(variable.name).second) {
      return invalid(member, fmt::format("'{}' stands twice; keep one", variable.name));
    }
    environment.push_back(std::move(variable));
  }
  return {};
}

base::Status check_memory(const core::ContainerDefinition& container, const std::string& path) {
  if (!container.memory_mib && !container.memory_reservation_mib) {
    return invalid(path + "memory",
                   fmt::format("container '{}' has neither memory nor memoryReservation; give at "
                               "least one, in MiB",
                               container.name));
  }
  if (container.memory_mib && container.memory_reservation_mib &&
      *container.memory_reservation_mib > *container.memory_mib) {
    return invalid(path + "memoryReservation",
                   fmt::format("{} MiB is more than memory, {} MiB; it must not be",
                               *container.memory_reservation_mib, *container.memory_mib));
  }
  return {};
}

base::Status check_log_configuration(const Json& json, const std::string& path,
                                     std::vector<std::string>& warnings) {
  const Json* configuration = json.find("logConfiguration");
  if (configuration == nullptr) return {};
  const std::string driver = configuration->string_or("logDriver", "");
  if (driver != "awslogs") {
    return fail(ErrorCode::kUnsupportedFeature,
                fmt::format("{}logConfiguration.logDriver: {} is not carried out yet; leave "
                            "logConfiguration out, logs stay with the container engine",
                            path, driver));
  }
  warnings.push_back(fmt::format(
      "{}logConfiguration: awslogs is stored and shown; logs stay with the container engine",
      path));
  return {};
}

base::Result<core::ContainerDefinition> decode_container(const Json& json, const std::string& path,
                                                         std::vector<std::string>& warnings) {
  if (auto status = check_no_nul(json, path.substr(0, path.size() - 1)); !status) {
    return fail(status.error());
  }
  if (auto status = apply_verdicts(container_definition_members(), json, path, warnings); !status) {
    return fail(status.error());
  }
  core::ContainerDefinition container;
  container.name = json.string_or("name", "");
  if (!base::is_ecs_name(container.name)) {
    return invalid(path + "name", "is required: 1 to 255 letters, digits, hyphens and underscores");
  }
  container.image = json.string_or("image", "");
  if (container.image.empty()) return invalid(path + "image", "is required: the image to run");
  if (container.image.find_first_of(" \t\r\n") != std::string::npos) {
    return invalid(path + "image", "must be an image's name, without blanks");
  }
  container.cpu_units = json.integer_or("cpu", 0);
  if (container.cpu_units < 0) return invalid(path + "cpu", "must not be negative");
  container.memory_mib = optional_integer(json, "memory");
  container.memory_reservation_mib = optional_integer(json, "memoryReservation");
  container.essential = json.bool_or("essential", true);
  container.entry_point = strings(json, "entryPoint");
  container.command = strings(json, "command");
  container.working_directory = json.string_or("workingDirectory", "");
  if (!container.working_directory.empty() && container.working_directory.front() != '/') {
    return invalid(path + "workingDirectory", "must be an absolute path");
  }
  container.stop_timeout_s = optional_integer(json, "stopTimeout");
  if (const Json* labels = json.find("dockerLabels")) {
    for (const Json::Member& label : labels->as_object()) {
      if (label.name.rfind("cotenant.", 0) == 0) {
        return invalid(
            path + "dockerLabels",
            fmt::format("'{}' begins with 'cotenant.', which is cotenant's own; rename it",
                        label.name));
      }
      container.docker_labels[label.name] = label.value.as_string();
    }
  }
  if (auto status = check_memory(container, path); !status) return fail(status.error());
  if (auto status = decode_environment(json, path, container.environment); !status) {
    return fail(status.error());
  }
  if (auto status = check_log_configuration(json, path, warnings); !status) {
    return fail(status.error());
  }
  if (const Json* requirements = json.find("resourceRequirements")) {
    auto gpu = decode_gpu_request(*requirements, path + "resourceRequirements");
    if (!gpu) return fail(gpu.error());
    container.gpu = *gpu;
  }
  return container;
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

base::Result<core::NetworkMode> decode_network_mode(const Json& body) {
  const std::string text = body.string_or("networkMode", "bridge");
  if (const auto mode = core::parse_network_mode(text)) return *mode;
  return fail(
      ErrorCode::kUnsupportedFeature,
      fmt::format("networkMode: {} is not carried out yet; use bridge, host or none", text));
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
  core::TaskDefinition& definition = decoded.value.definition;
  if (auto status = apply_verdicts(task_definition_members(), body, "", decoded.warnings);
      !status) {
    return fail(status.error());
  }
  definition.family = body.string_or("family", "");
  if (!base::is_ecs_name(definition.family)) {
    return invalid("family", "must be 1 to 255 letters, digits, hyphens and underscores");
  }
  auto network_mode = decode_network_mode(body);
  if (!network_mode) return fail(network_mode.error());
  definition.network_mode = *network_mode;

  const Json::Array& containers = body.array_or_empty("containerDefinitions");
  if (containers.empty() || containers.size() > base::limits::kContainersPerTask) {
    return invalid("containerDefinitions",
                   fmt::format("must have from 1 to {} containers, not {}",
                               base::limits::kContainersPerTask, containers.size()));
  }
  std::set<std::string> names;
  bool any_essential = false;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string path = fmt::format("containerDefinitions[{}].", i);
    auto container = decode_container(containers[i], path, decoded.warnings);
    if (!container) return fail(container.error());
    if (!names.insert(container->name).second) {
      return invalid(path + "name",
                     fmt::format("'{}' stands twice; names are unique in a task", container->name));
    }
    any_essential = any_essential || container->essential;
    definition.containers.push_back(std::move(*container));
  }
  if (!any_essential) {
    return invalid("containerDefinitions", "at least one container must be essential");
  }

  const std::vector<std::string> compatibilities = strings(body, "requiresCompatibilities");
  auto gpu_warnings = check_task_gpu_rules(definition, compatibilities);
  if (!gpu_warnings) return fail(gpu_warnings.error());
  if (auto status = check_compatibilities(compatibilities, decoded.warnings); !status) {
    return fail(status.error());
  }
  decoded.warnings.insert(decoded.warnings.end(), gpu_warnings->begin(), gpu_warnings->end());

  auto tags = decode_tags(body);
  if (!tags) return fail(tags.error());
  definition.tags = std::move(*tags);

  definition.document = document_text(body);
  if (definition.document.size() > base::limits::kTaskDefinitionBytes) {
    return invalid("containerDefinitions",
                   fmt::format("the task definition is {} bytes of JSON; at most {} are taken",
                               definition.document.size(), base::limits::kTaskDefinitionBytes));
  }
  definition.warnings = decoded.warnings;
  return decoded;
}

}  // namespace cotenant::codec
