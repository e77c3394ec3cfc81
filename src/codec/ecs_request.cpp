#include "codec/ecs_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/limits.h"
#include "codec/environment_file_rules.h"
#include "codec/gpu_rules.h"
#include "codec/invalid.h"
#include "codec/member_verdicts.h"
#include "codec/no_nul.h"
#include "codec/placement_request.h"
#include "codec/tag_request.h"
#include "core/reducer.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using base::fail;

base::Error at_member(std::string_view member, base::Error error) {
  error.message = fmt::format("{}: {}", member, error.message);
  return error;
}

// The same text for the same members in any order.
Json sorted(const Json& value) {
  if (value.is_array()) {
    Json copy = Json::array();
    for (const Json& item : value.as_array()) copy.push(sorted(item));
    return copy;
  }
  if (!value.is_object()) return value;
  Json::Object members;
  for (const Json::Member& member : value.as_object()) {
    members.push_back({member.name, sorted(member.value)});
  }
  std::sort(members.begin(), members.end(),
            [](const Json::Member& a, const Json::Member& b) { return a.name < b.name; });
  return Json(std::move(members));
}

std::string parameters_digest(const Json& body) {
  Json::Object members;
  for (const Json::Member& member : body.as_object()) {
    if (member.name != "clientToken" && !member.value.is_null()) members.push_back(member);
  }
  return base::digest_hex(sorted(Json(std::move(members))).dump());
}

base::Status check_container_overrides(const Json& overrides, std::vector<std::string>& warnings) {
  const std::string prefix = "overrides.";
  if (overrides.dump().size() > base::limits::kOverridesBytes) {
    return invalid("overrides", fmt::format("is longer than {} characters of JSON; pass less",
                                            base::limits::kOverridesBytes));
  }
  if (auto status = apply_verdicts(task_override_members(), overrides, prefix, warnings); !status) {
    return status;
  }
  const Json::Array& list = overrides.array_or_empty("containerOverrides");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("{}containerOverrides[{}].", prefix, i);
    if (auto status = apply_verdicts(container_override_members(), list[i], path, warnings);
        !status) {
      return status;
    }
  }
  return {};
}

base::Result<core::ContainerOverride> decode_container_override(const Json& json,
                                                                const std::string& path) {
  if (auto status = check_no_nul(json, path); !status) return fail(status.error());
  core::ContainerOverride entry;
  entry.name = json.string_or("name", "");
  if (entry.name.empty())
    return invalid(path + ".name", "is required: which container to override");
  if (const Json* command = json.find("command")) {
    entry.command.emplace();
    for (const Json& word : command->as_array()) entry.command->push_back(word.as_string());
  }
  for (const Json& pair : json.array_or_empty("environment")) {
    core::EnvironmentVariable variable{pair.string_or("name", ""), pair.string_or("value", "")};
    if (variable.name.empty() || variable.name.find('=') != std::string::npos) {
      return invalid(path + ".environment", "every entry needs a name, without '='");
    }
    entry.environment.push_back(std::move(variable));
  }
  if (json.find("environmentFiles") != nullptr) {
    entry.environment_files.emplace();
    for (const Json& file : json.array_or_empty("environmentFiles")) {
      entry.environment_files->push_back(file.string_or("value", ""));
    }
    const auto status = check_environment_files(*entry.environment_files, path + ".");
    if (!status) return fail(status.error());
  }
  const auto number = [&](std::string_view member) -> std::optional<std::int64_t> {
    const Json* value = json.find(member);
    if (value == nullptr) return std::nullopt;
    return value->as_integer();
  };
  entry.cpu_units = number("cpu");
  entry.memory_mib = number("memory");
  entry.memory_reservation_mib = number("memoryReservation");
  const Json::Array& requirements = json.array_or_empty("resourceRequirements");
  if (!requirements.empty()) {
    auto gpu = decode_gpu_request(Json(requirements), path + ".resourceRequirements");
    if (!gpu) return fail(gpu.error());
    entry.gpu = *gpu;
  }
  return entry;
}

base::Status check_launch_type(const std::string& launch_type, std::vector<std::string>& warnings) {
  if (launch_type.empty() || launch_type == "EC2") return {};
  if (launch_type == "MANAGED_INSTANCES") {
    warnings.push_back(
        "launchType: MANAGED_INSTANCES runs on the cluster's own container instances, and is shown as "
        "EC2");
    return {};
  }
  return fail(ErrorCode::kUnsupportedFeature,
              fmt::format("launchType: {} is not offered: tasks run on the cluster's own container "
                          "instances; use EC2 or leave it out",
                          launch_type));
}

base::Status same_cluster(const base::ResourceRef& ref, const std::string& cluster,
                          std::string_view member) {
  if (!ref.cluster || *ref.cluster == cluster) return {};
  return invalid(member, fmt::format("is in cluster '{}', but the call is for cluster '{}'; set "
                                     "cluster to match",
                                     *ref.cluster, cluster));
}

// `containerInstances`, all of the one cluster.
base::Result<std::vector<std::string>> decode_instance_ids(const Json& body,
                                                           const std::string& cluster) {
  auto refs = decode_refs(body, "containerInstances", "container-instance");
  if (!refs) return fail(refs.error());
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < refs->size(); ++i) {
    auto status = same_cluster((*refs)[i], cluster, fmt::format("containerInstances[{}]", i));
    if (!status) return fail(status.error());
    ids.push_back((*refs)[i].id);
  }
  return ids;
}

}  // namespace

base::Result<std::string> decode_cluster(const Json& body) {
  const std::string text = body.string_or("cluster", core::kDefaultCluster);
  auto ref = base::parse_resource_ref("cluster", text);
  if (!ref) return fail(at_member("cluster", ref.error()));
  return ref->id;
}

// The cluster's settings: ECS's containerInsights, which is stored and shown, and cotenant's own.
base::Result<std::map<std::string, std::string>> decode_cluster_settings(const Json& body) {
  std::map<std::string, std::string> settings;
  const auto& entries = body.array_or_empty("settings");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string name = entries[i].string_or("name", "");
    const std::string value = entries[i].string_or("value", "");
    const auto at = [&](std::string_view member) {
      return fmt::format("settings[{}].{}", i, member);
    };
    if (settings.count(name) > 0)
      return invalid(at("name"), fmt::format("'{}' stands there twice", name));
    if (name == core::kPlacementPolicySetting) {
      if (!core::is_placement_policy(value)) {
        return invalid(at("value"), fmt::format("must be one of {}, not '{}'",
                                                fmt::join(core::placement_policy_names(), ", "),
                                                value.substr(0, 40)));
      }
    } else if (name == "containerInsights") {
      if (value != "enabled" && value != "disabled" && value != "enhanced") {
        return invalid(at("value"), "must be enabled, enhanced or disabled");
      }
    } else {
      return invalid(at("name"),
                     fmt::format("must be containerInsights or {}", core::kPlacementPolicySetting));
    }
    settings[name] = value;
  }
  return settings;
}

base::Result<core::UpdateClusterSettings> decode_update_cluster_settings(const Json& body) {
  auto cluster = decode_cluster(body);
  if (!cluster) return fail(cluster.error());
  auto settings = decode_cluster_settings(body);
  if (!settings) return fail(settings.error());
  return core::UpdateClusterSettings{std::move(*cluster), std::move(*settings)};
}

base::Result<core::CreateCluster> decode_create_cluster(const Json& body) {
  for (const Json::Member& member : body.as_object()) {
    if (member.value.is_null() || member.name == "clusterName") continue;
    if (member.value.is_array() && member.value.as_array().empty()) continue;
    if (member.name == "configuration" || member.name == "capacityProviders" ||
        member.name == "defaultCapacityProviderStrategy" ||
        member.name == "serviceConnectDefaults") {
      return fail(
          ErrorCode::kUnsupportedFeature,
          fmt::format("{}: cotenant does not carry this out yet; leave it out", member.name));
    }
  }
  auto tags = decode_tags(body);
  if (!tags) return fail(tags.error());
  auto settings = decode_cluster_settings(body);
  if (!settings) return fail(settings.error());
  core::CreateCluster command{body.string_or("clusterName", core::kDefaultCluster),
                              std::move(*tags), std::move(*settings)};
  if (!base::is_ecs_name(command.name)) {
    return invalid("clusterName", "must be 1 to 255 letters, digits, hyphens and underscores");
  }
  return command;
}

namespace {

// What RunTask and StartTask have in common.
base::Status decode_launch(const Json& body, core::RunTask& command,
                           std::vector<std::string>& warnings) {
  auto cluster = decode_cluster(body);
  if (!cluster) return fail(cluster.error());
  command.cluster = std::move(*cluster);
  auto definition = base::parse_task_definition_ref(body.string_or("taskDefinition", ""));
  if (!definition) return fail(at_member("taskDefinition", definition.error()));
  command.definition = std::move(*definition);
  command.group = body.string_or("group", "");
  command.started_by = body.string_or("startedBy", "");
  auto tags = decode_tags(body);
  if (!tags) return fail(tags.error());
  command.tags = std::move(*tags);
  const std::string propagate = body.string_or("propagateTags", "NONE");
  if (propagate == "SERVICE") {
    return invalid("propagateTags",
                   "SERVICE is for tasks that a service starts; use TASK_DEFINITION or NONE");
  }
  command.tag_policy.propagate_from_definition = propagate == "TASK_DEFINITION";
  command.tag_policy.managed = body.bool_or("enableECSManagedTags", false);
  if (const Json* overrides = body.find("overrides")) {
    if (auto status = check_container_overrides(*overrides, warnings); !status) return status;
    const Json::Array& list = overrides->array_or_empty("containerOverrides");
    for (std::size_t i = 0; i < list.size(); ++i) {
      auto entry =
          decode_container_override(list[i], fmt::format("overrides.containerOverrides[{}]", i));
      if (!entry) return fail(entry.error());
      command.overrides.push_back(std::move(*entry));
    }
  }
  return {};
}

}  // namespace

base::Result<Decoded<core::RunTask>> decode_run_task(const Json& body) {
  Decoded<core::RunTask> decoded;
  core::RunTask& command = decoded.value;
  if (auto status = apply_verdicts(run_task_members(), body, "", decoded.warnings); !status) {
    return fail(status.error());
  }
  if (auto status = decode_launch(body, command, decoded.warnings); !status) {
    return fail(status.error());
  }
  if (auto status = check_launch_type(body.string_or("launchType", ""), decoded.warnings);
      !status) {
    return fail(status.error());
  }
  if (auto status = decode_placement_constraints(body.array_or_empty("placementConstraints"), true,
                                                 command.placement);
      !status) {
    return fail(status.error());
  }
  if (auto status = decode_placement_strategy(body.array_or_empty("placementStrategy"),
                                              command.placement, decoded.warnings);
      !status) {
    return fail(status.error());
  }
  command.count = static_cast<int>(body.integer_or("count", 1));
  command.client_token = body.string_or("clientToken", "");
  command.parameters_digest = parameters_digest(body);
  return decoded;
}

base::Result<Decoded<core::StartTask>> decode_start_task(const Json& body) {
  Decoded<core::StartTask> decoded;
  core::RunTask& launch = decoded.value.launch;
  if (auto status = apply_verdicts(start_task_members(), body, "", decoded.warnings); !status) {
    return fail(status.error());
  }
  if (auto status = decode_launch(body, launch, decoded.warnings); !status) {
    return fail(status.error());
  }
  auto ids = decode_instance_ids(body, launch.cluster);
  if (!ids) return fail(ids.error());
  decoded.value.instance_ids = std::move(*ids);
  return decoded;
}

base::Result<core::UpdateInstancesState> decode_update_instances_state(const Json& body) {
  auto cluster = decode_cluster(body);
  if (!cluster) return fail(cluster.error());
  auto ids = decode_instance_ids(body, *cluster);
  if (!ids) return fail(ids.error());
  const std::string text = body.string_or("status", "");
  const auto status = core::parse_instance_status(text);
  if (!status || *status == core::InstanceStatus::kInactive) {
    return invalid("status", fmt::format("'{}' cannot be asked for; use ACTIVE or DRAINING", text));
  }
  return core::UpdateInstancesState{std::move(*cluster), std::move(*ids), *status};
}

base::Result<core::DeregisterInstance> decode_deregister_instance(const Json& body) {
  auto cluster = decode_cluster(body);
  if (!cluster) return fail(cluster.error());
  auto ref =
      base::parse_resource_ref("container-instance", body.string_or("containerInstance", ""));
  if (!ref) return fail(at_member("containerInstance", ref.error()));
  if (auto status = same_cluster(*ref, *cluster, "containerInstance"); !status) {
    return fail(status.error());
  }
  return core::DeregisterInstance{std::move(*cluster), ref->id, body.bool_or("force", false)};
}

base::Result<base::TaskDefinitionRef> decode_revision(const std::string& text,
                                                      std::string_view member) {
  auto ref = base::parse_task_definition_ref(text);
  if (!ref) return fail(at_member(member, ref.error()));
  if (!ref->revision) {
    return fail(ErrorCode::kClient,
                fmt::format("{}: Revision is missing: give '{}:<revision>' or the ARN", member,
                            ref->family));
  }
  return ref;
}

bool includes(const Json& body, std::string_view field) {
  const Json::Array& include = body.array_or_empty("include");
  return std::any_of(include.begin(), include.end(), [&](const Json& item) {
    return item.is_string() && item.as_string() == field;
  });
}

base::Result<core::StopTask> decode_stop_task(const Json& body) {
  auto cluster = decode_cluster(body);
  if (!cluster) return fail(cluster.error());
  auto ref = base::parse_resource_ref("task", body.string_or("task", ""));
  if (!ref) return fail(at_member("task", ref.error()));
  if (auto status = same_cluster(*ref, *cluster, "task"); !status) return fail(status.error());
  return core::StopTask{*cluster, ref->id, body.string_or("reason", "")};
}

base::Result<std::vector<base::ResourceRef>> decode_refs(const Json& body, std::string_view member,
                                                         std::string_view type) {
  const Json::Array& list = body.array_or_empty(member);
  if (list.size() > base::limits::kPageItems) {
    return invalid(member, fmt::format("has {} entries; ask for at most {} at once", list.size(),
                                       base::limits::kPageItems));
  }
  std::vector<base::ResourceRef> refs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto ref = base::parse_resource_ref(type, list[i].as_string());
    if (!ref) return fail(at_member(fmt::format("{}[{}]", member, i), ref.error()));
    refs.push_back(std::move(*ref));
  }
  return refs;
}

std::string encode_page_token(const std::string& last_key) {
  std::string token;
  for (const char c : last_key) token += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return token;
}

base::Result<Page> decode_page(const Json& body) {
  Page page;
  page.max_results = static_cast<std::size_t>(
      body.integer_or("maxResults", static_cast<std::int64_t>(base::limits::kPageItems)));
  if (page.max_results < 1 || page.max_results > base::limits::kPageItems) {
    return invalid("maxResults", fmt::format("must be from 1 to {}", base::limits::kPageItems));
  }
  const std::string token = body.string_or("nextToken", "");
  const auto nibble = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c - 'a' + 10; };
  const bool hex = std::all_of(token.begin(), token.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (!hex || token.size() % 2 != 0 || token.size() > 2 * 2 * base::limits::kNameChars) {
    return invalid("nextToken", "is not a token that this server gave; start without one");
  }
  for (std::size_t i = 0; i < token.size(); i += 2) {
    page.after.push_back(static_cast<char>(nibble(token[i]) * 16 + nibble(token[i + 1])));
  }
  return page;
}

base::Result<ListTasksQuery> decode_list_tasks(const Json& body) {
  ListTasksQuery query;
  auto cluster = decode_cluster(body);
  if (!cluster) return fail(cluster.error());
  query.cluster = std::move(*cluster);
  auto page = decode_page(body);
  if (!page) return fail(page.error());
  query.page = std::move(*page);
  bool elsewhere = false;
  if (const Json* instance = body.find("containerInstance")) {
    auto ref = base::parse_resource_ref("container-instance", instance->as_string());
    if (!ref) return fail(at_member("containerInstance", ref.error()));
    query.instance_id = ref->id;
    elsewhere = ref->cluster && *ref->cluster != query.cluster;
  }
  if (body.find("family") != nullptr) query.family = body.string_or("family", "");
  if (body.find("startedBy") != nullptr) query.started_by = body.string_or("startedBy", "");
  if (body.find("serviceName") != nullptr) query.service_name = body.string_or("serviceName", "");
  // Every task is of launch type EC2 and of no managed daemon: such filters match nothing.
  query.none = elsewhere || body.find("daemonName") != nullptr ||
               body.string_or("launchType", "EC2") != "EC2";
  const std::string desired = body.string_or("desiredStatus", "RUNNING");
  // ECS: a filter for PENDING is accepted and matches nothing.
  query.none = query.none || desired == "PENDING";
  query.desired_status =
      core::parse_desired_status(desired).value_or(core::DesiredStatus::kRunning);
  return query;
}

}  // namespace cotenant::codec
