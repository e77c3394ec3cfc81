#include "codec/member_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cotenant::codec {
namespace {

constexpr Verdict kCarried = Verdict::kCarried;
constexpr Verdict kWarned = Verdict::kWarned;
constexpr Verdict kRefused = Verdict::kRefused;

constexpr std::string_view kRoles = "stored and shown; there are no AWS roles outside AWS";
constexpr std::string_view kNoRoles = "has no effect; there are no AWS roles outside AWS";
constexpr std::string_view kLeaveOut = "leave it out";

bool without_effect(const Json& value) {
  return value.is_null() || (value.is_bool() && !value.as_bool()) ||
         (value.is_array() && value.as_array().empty()) ||
         (value.is_object() && value.as_object().empty()) ||
         (value.is_string() && value.as_string().empty());
}

const MemberVerdict* find(const std::vector<MemberVerdict>& table, std::string_view member) {
  const auto row = std::find_if(table.begin(), table.end(),
                                [&](const MemberVerdict& entry) { return entry.member == member; });
  return row == table.end() ? nullptr : &*row;
}

}  // namespace

const std::vector<MemberVerdict>& task_definition_members() {
  static const std::vector<MemberVerdict> table = {
      {"family", kCarried, ""},
      {"containerDefinitions", kCarried, ""},
      {"networkMode", kCarried, ""},
      {"requiresCompatibilities", kCarried, ""},
      {"taskRoleArn", kWarned, kRoles},
      {"executionRoleArn", kWarned, kRoles},
      {"tags", kCarried, ""},
      {"runtimePlatform", kWarned, "stored and shown; a task runs on whatever its instance is"},
      {"volumes", kRefused, kLeaveOut},
      {"placementConstraints", kRefused, kLeaveOut},
      {"cpu", kRefused, "give cpu for each container instead"},
      {"memory", kRefused, "give memory for each container instead"},
      {"pidMode", kRefused, kLeaveOut},
      {"ipcMode", kRefused, kLeaveOut},
      {"proxyConfiguration", kRefused, kLeaveOut},
      {"inferenceAccelerators", kRefused, kLeaveOut},
      {"ephemeralStorage", kRefused, kLeaveOut},
      {"enableFaultInjection", kRefused, kLeaveOut},
  };
  return table;
}

const std::vector<MemberVerdict>& container_definition_members() {
  static const std::vector<MemberVerdict> table = {
      {"name", kCarried, ""},
      {"image", kCarried, ""},
      {"cpu", kCarried, ""},
      {"memory", kCarried, ""},
      {"memoryReservation", kCarried, ""},
      {"essential", kCarried, ""},
      {"entryPoint", kCarried, ""},
      {"command", kCarried, ""},
      {"environment", kCarried, ""},
      {"workingDirectory", kCarried, ""},
      {"stopTimeout", kCarried, ""},
      {"resourceRequirements", kCarried, ""},
      {"dockerLabels", kCarried, ""},
      // The one driver that is accepted is checked with the container (awslogs).
      {"logConfiguration", kCarried, ""},
      {"repositoryCredentials", kRefused, "bring the image to the engine first"},
      {"links", kRefused, kLeaveOut},
      {"portMappings", kRefused, "use networkMode host for a task that does not share a GPU"},
      {"restartPolicy", kRefused, kLeaveOut},
      {"environmentFiles", kRefused, "use environment"},
      {"mountPoints", kRefused, kLeaveOut},
      {"volumesFrom", kRefused, kLeaveOut},
      {"linuxParameters", kRefused, kLeaveOut},
      {"secrets", kRefused, kLeaveOut},
      {"dependsOn", kRefused, kLeaveOut},
      {"startTimeout", kRefused, kLeaveOut},
      {"versionConsistency", kRefused, kLeaveOut},
      {"hostname", kRefused, kLeaveOut},
      {"user", kRefused, "set the user in the image"},
      {"disableNetworking", kRefused, "use networkMode none"},
      {"privileged", kRefused, kLeaveOut},
      {"readonlyRootFilesystem", kRefused, kLeaveOut},
      {"dnsServers", kRefused, kLeaveOut},
      {"dnsSearchDomains", kRefused, kLeaveOut},
      {"extraHosts", kRefused, kLeaveOut},
      {"dockerSecurityOptions", kRefused, kLeaveOut},
      {"interactive", kRefused, kLeaveOut},
      {"pseudoTerminal", kRefused, kLeaveOut},
      {"ulimits", kRefused, kLeaveOut},
      {"healthCheck", kRefused, kLeaveOut},
      {"systemControls", kRefused, kLeaveOut},
      {"firelensConfiguration", kRefused, kLeaveOut},
      {"credentialSpecs", kRefused, kLeaveOut},
  };
  return table;
}

const std::vector<MemberVerdict>& run_task_members() {
  static const std::vector<MemberVerdict> table = {
      {"cluster", kCarried, ""},
      {"count", kCarried, ""},
      {"group", kCarried, ""},
      {"startedBy", kCarried, ""},
      {"overrides", kCarried, ""},
      {"taskDefinition", kCarried, ""},
      {"clientToken", kCarried, ""},
      {"launchType", kCarried, ""},
      {"tags", kCarried, ""},
      {"propagateTags", kCarried, ""},
      {"enableECSManagedTags", kCarried, ""},
      {"referenceId", kWarned, "accepted; ECS shows it nowhere, and it has no effect"},
      {"enableExecuteCommand", kRefused, "use the engine's own exec"},
      {"capacityProviderStrategy", kRefused, kLeaveOut},
      {"networkConfiguration", kRefused, kLeaveOut},
      {"placementConstraints", kRefused, kLeaveOut},
      {"placementStrategy", kRefused, "leave it out: tasks go to the tightest GPU"},
      {"platformVersion", kRefused, kLeaveOut},
      {"volumeConfigurations", kRefused, kLeaveOut},
  };
  return table;
}

const std::vector<MemberVerdict>& start_task_members() {
  static const std::vector<MemberVerdict> table = [] {
    // StartTask has RunTask's members but those about where, how often and once.
    constexpr std::array<std::string_view, 7> kRunTaskOnly = {
        "count",           "clientToken",          "launchType",       "capacityProviderStrategy",
        "platformVersion", "placementConstraints", "placementStrategy"};
    std::vector<MemberVerdict> rows = {{"containerInstances", kCarried, ""}};
    for (const MemberVerdict& row : run_task_members()) {
      if (std::find(kRunTaskOnly.begin(), kRunTaskOnly.end(), row.member) == kRunTaskOnly.end()) {
        rows.push_back(row);
      }
    }
    return rows;
  }();
  return table;
}

const std::vector<MemberVerdict>& task_override_members() {
  static const std::vector<MemberVerdict> table = {
      {"containerOverrides", kCarried, ""},
      {"executionRoleArn", kWarned, kNoRoles},
      {"taskRoleArn", kWarned, kNoRoles},
      {"cpu", kRefused, "register a task definition with these values"},
      {"memory", kRefused, "register a task definition with these values"},
      {"inferenceAcceleratorOverrides", kRefused, kLeaveOut},
      {"ephemeralStorage", kRefused, kLeaveOut},
  };
  return table;
}

const std::vector<MemberVerdict>& container_override_members() {
  static const std::vector<MemberVerdict> table = {
      {"name", kCarried, ""},
      {"command", kCarried, ""},
      {"environment", kCarried, ""},
      {"environmentFiles", kRefused, "use environment"},
      {"cpu", kCarried, ""},
      {"memory", kCarried, ""},
      {"memoryReservation", kCarried, ""},
      {"resourceRequirements", kCarried, ""},
  };
  return table;
}

base::Status apply_verdicts(const std::vector<MemberVerdict>& table, const Json& object,
                            const std::string& prefix, std::vector<std::string>& warnings) {
  for (const Json::Member& member : object.as_object()) {
    if (without_effect(member.value)) continue;
    const MemberVerdict* row = find(table, member.name);
    if (row == nullptr || row->verdict == kCarried) continue;
    if (row->verdict == kRefused) {
      return base::fail(base::ErrorCode::kUnsupportedFeature,
                        fmt::format("{}{}: cotenant does not carry this out yet, and ignoring it "
                                    "could change what the task does; {}",
                                    prefix, member.name, row->text));
    }
    warnings.push_back(fmt::format("{}{}: {}", prefix, member.name, row->text));
  }
  return {};
}

}  // namespace cotenant::codec
