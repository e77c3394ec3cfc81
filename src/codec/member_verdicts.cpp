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
constexpr std::string_view kHostFolder =
    "mount it on the instance and give its folder as host.sourcePath";

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
      {"volumes", kCarried, ""},
      {"placementConstraints", kCarried, ""},
      {"cpu", kCarried, ""},
      {"memory", kCarried, ""},
      {"pidMode", kCarried, ""},
      {"ipcMode", kCarried, ""},
      {"proxyConfiguration", kRefused, "run the proxy as a container of the task"},
      {"inferenceAccelerators", kRefused, "ask for GPUs with resourceRequirements"},
      {"ephemeralStorage", kWarned, "stored and shown; a task has the disk of its instance"},
      {"enableFaultInjection", kWarned, "stored and shown; there is no fault injection to allow"},
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
      // Its drivers are checked in task_definition_rules.cpp.
      {"logConfiguration", kCarried, ""},
      {"repositoryCredentials", kRefused, "bring the image to the engine first"},
      {"links", kCarried, ""},
      {"portMappings", kCarried, ""},
      {"restartPolicy", kCarried, ""},
      {"environmentFiles", kCarried, ""},
      {"mountPoints", kCarried, ""},
      {"volumesFrom", kCarried, ""},
      {"linuxParameters", kCarried, ""},
      {"secrets", kRefused, "use environment or environmentFiles"},
      {"dependsOn", kCarried, ""},
      {"startTimeout", kCarried, ""},
      {"versionConsistency", kWarned,
       "stored and shown; an image is what its engine has under the name"},
      {"hostname", kCarried, ""},
      {"user", kCarried, ""},
      {"disableNetworking", kCarried, ""},
      {"privileged", kCarried, ""},
      {"readonlyRootFilesystem", kCarried, ""},
      {"dnsServers", kCarried, ""},
      {"dnsSearchDomains", kCarried, ""},
      {"extraHosts", kCarried, ""},
      {"dockerSecurityOptions", kCarried, ""},
      {"interactive", kCarried, ""},
      {"pseudoTerminal", kCarried, ""},
      {"ulimits", kCarried, ""},
      {"healthCheck", kCarried, ""},
      {"systemControls", kCarried, ""},
      {"firelensConfiguration", kRefused, "use logConfiguration"},
      {"credentialSpecs", kRefused, "they are for Windows; leave it out"},
  };
  return table;
}

const std::vector<MemberVerdict>& volume_members() {
  static const std::vector<MemberVerdict> table = {
      {"name", kCarried, ""},
      {"host", kCarried, ""},
      {"dockerVolumeConfiguration", kCarried, ""},
      {"efsVolumeConfiguration", kRefused, kHostFolder},
      {"s3filesVolumeConfiguration", kRefused, kHostFolder},
      {"fsxWindowsFileServerVolumeConfiguration", kRefused, kHostFolder},
      {"configuredAtLaunch", kRefused, kHostFolder},
  };
  return table;
}

const std::vector<MemberVerdict>& port_mapping_members() {
  static const std::vector<MemberVerdict> table = {
      {"containerPort", kCarried, ""},
      {"hostPort", kCarried, ""},
      {"protocol", kCarried, ""},
      {"name", kWarned, "stored and shown; there is no Service Connect"},
      {"appProtocol", kWarned, "stored and shown; there is no Service Connect"},
      {"containerPortRange", kRefused, "give a mapping for each port"},
  };
  return table;
}

const std::vector<MemberVerdict>& log_configuration_members() {
  static const std::vector<MemberVerdict> table = {
      {"logDriver", kCarried, ""},
      {"options", kCarried, ""},
      {"secretOptions", kRefused, "use options"},
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
      {"networkConfiguration", kWarned,
       "has no effect; a task with networkMode awsvpc gets an address on its instance's bridge"},
      {"placementConstraints", kCarried, ""},
      {"placementStrategy", kCarried, ""},
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
      {"environmentFiles", kCarried, ""},
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
