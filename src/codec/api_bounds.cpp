#include "codec/api_bounds.h"

#include <algorithm>

#include "base/limits.h"
#include "codec/utf8.h"

namespace cotenant::codec {
namespace {

namespace limits = base::limits;
using enum Characters;

// "ECS API reference" stands for the page of the operation or data type that the row names; the
// numbers are in the text of that member there.
constexpr std::string_view kReference = "ECS API reference";
constexpr std::string_view kQuotas = "ECS service quotas";

constexpr std::int64_t kPage = limits::kPageItems;
constexpr std::int64_t kNameMax = limits::kNameChars;
constexpr std::int64_t kMemoryMin = limits::kContainerMemoryMibMin;
constexpr auto kAnyMin = kUnstatedMin;
constexpr auto kAnyMax = kUnstatedMax;

constexpr Bound kBounds[] = {
    {"Attribute", "name", 1, 128, kAttributeName, kReference},
    {"Attribute", "value", 1, 128, kAttributeValue, kReference},
    {"AwsVpcConfiguration", "securityGroups", kAnyMin, 5, kAny, kReference},
    {"AwsVpcConfiguration", "subnets", kAnyMin, 16, kAny, kReference},
    {"CanaryConfiguration", "canaryBakeTimeInMinutes", 0, 1440, kAny, kReference},
    {"ContainerDefinition", "cpu", 0, 262144, kAny,
     "ECS API reference: 262144 is the largest CPU share that the Linux kernel takes"},
    {"ContainerDefinition", "credentialSpecs", kAnyMin, 1, kAny, kReference},
    {"ContainerDefinition", "environmentFiles", kAnyMin, 10, kAny,
     "ECS developer guide, environment files: at most ten"},
    {"ContainerDefinition", "hostname", kAnyMin, 64, kAny, "Linux, sethostname(2)"},
    {"ContainerDefinition", "memory", kMemoryMin, kAnyMax, kAny,
     "ECS API reference: Docker 20.10 and later reserve at least 6 MiB"},
    {"ContainerDefinition", "memoryReservation", kMemoryMin, kAnyMax, kAny,
     "ECS API reference: Docker 20.10 and later reserve at least 6 MiB"},
    {"ContainerDefinition", "name", 1, kNameMax, kName, kReference},
    {"ContainerDefinition", "portMappings", kAnyMin, limits::kPortMappings, kAny,
     "cotenant: far above what a container listens on"},
    {"ContainerDefinition", "startTimeout", 0, limits::kStopTimeoutSecondsMax, kAny,
     "cotenant; ECS states 2..120 for Fargate only"},
    {"ContainerDefinition", "stopTimeout", 0, limits::kStopTimeoutSecondsMax, kAny,
     "cotenant; ECS states 2..120 for Fargate only"},
    {"ContainerOverride", "cpu", 0, 262144, kAny, "as ContainerDefinition.cpu"},
    {"ContainerOverride", "memory", kMemoryMin, kAnyMax, kAny, "as ContainerDefinition.memory"},
    {"ContainerOverride", "memoryReservation", kMemoryMin, kAnyMax, kAny,
     "as ContainerDefinition.memoryReservation"},
    {"ContainerRestartPolicy", "ignoredExitCodes", kAnyMin, 50, kAny, kReference},
    {"ContainerRestartPolicy", "restartAttemptPeriod", 60, 1800, kAny, kReference},
    {"CreateCapacityProviderRequest", "name", 1, kNameMax, kAny, kReference},
    {"CreateClusterRequest", "clusterName", 1, kNameMax, kName, kReference},
    {"CreateServiceRequest", "capacityProviderStrategy", kAnyMin, 20, kAny, kReference},
    {"CreateServiceRequest", "clientToken", kAnyMin, 36, kVisibleAscii, kReference},
    {"CreateServiceRequest", "desiredCount", 0, 5000, kAny, kQuotas},
    {"CreateServiceRequest", "healthCheckGracePeriodSeconds", 0, kAnyMax, kAny, kReference},
    {"CreateServiceRequest", "placementConstraints", kAnyMin, 10, kAny, kReference},
    {"CreateServiceRequest", "placementStrategy", kAnyMin, 5, kAny, kReference},
    {"CreateServiceRequest", "serviceName", 1, kNameMax, kName, kReference},
    {"CreateTaskSetRequest", "clientToken", kAnyMin, 36, kVisibleAscii, kReference},
    {"DeleteAttributesRequest", "attributes", 1, 10, kAny, kReference},
    {"DeleteTaskDefinitionsRequest", "taskDefinitions", 1, 10, kAny, kReference},
    {"DeploymentConfiguration", "maximumPercent", 0, kAnyMax, kAny, "a share of tasks"},
    {"DeploymentConfiguration", "minimumHealthyPercent", 0, kAnyMax, kAny, "a share of tasks"},
    {"DescribeCapacityProvidersRequest", "capacityProviders", kAnyMin, kPage, kAny, kReference},
    {"DescribeCapacityProvidersRequest", "maxResults", 1, 10, kAny, kReference},
    {"DescribeClustersRequest", "clusters", kAnyMin, kPage, kAny, kReference},
    {"DescribeContainerInstancesRequest", "containerInstances", 1, kPage, kAny, kReference},
    {"DescribeServiceDeploymentsRequest", "serviceDeploymentArns", 1, 20, kAny, kReference},
    {"DescribeServiceRevisionsRequest", "serviceRevisionArns", 1, 20, kAny, kReference},
    {"DescribeServicesRequest", "services", 1, 10, kAny, kReference},
    {"DescribeTasksRequest", "tasks", 1, kPage, kAny, kReference},
    {"EphemeralStorage", "sizeInGiB", 21, 200, kAny, kReference},
    {"GetTaskProtectionRequest", "tasks", kAnyMin, kPage, kAny, kReference},
    {"HealthCheck", "interval", 5, 300, kAny, kReference},
    {"HealthCheck", "retries", 1, 10, kAny, kReference},
    {"HealthCheck", "startPeriod", 0, 300, kAny, kReference},
    {"HealthCheck", "timeout", 2, 60, kAny, kReference},
    {"LinearConfiguration", "stepBakeTimeInMinutes", 0, 1440, kAny, kReference},
    {"LinuxParameters", "maxSwap", 0, kAnyMax, kAny, kReference},
    {"LinuxParameters", "sharedMemorySize", 0, kAnyMax, kAny, "a size in MiB"},
    {"LinuxParameters", "swappiness", 0, 100, kAny, kReference},
    {"ListAccountSettingsRequest", "maxResults", 1, 10, kAny, kReference},
    {"ListAttributesRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListClustersRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListContainerInstancesRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListServiceDeploymentsRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListServicesByNamespaceRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListServicesRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListTaskDefinitionFamiliesRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListTaskDefinitionsRequest", "maxResults", 1, kPage, kAny, kReference},
    {"ListTasksRequest", "maxResults", 1, kPage, kAny, kReference},
    {"NvidiaMpsAllocation", "maxComputePercent", 1, 100, kAny,
     "ECS API reference, NvidiaMpsAllocation: a percentage of the GPU's compute"},
    {"NvidiaMpsAllocation", "memory", 1, limits::kGpuMemoryMibMax, kAny,
     "ECS API reference: at least 1; the upper bound is cotenant's, far above any GPU"},
    {"PlacementConstraint", "expression", kAnyMin, 2000, kAny, kReference},
    {"PortMapping", "containerPort", 1, 65535, kAny, "TCP and UDP ports"},
    {"PortMapping", "hostPort", 0, 65535, kAny, "TCP and UDP ports; 0: any free one"},
    {"PortMapping", "name", kAnyMin, 64, kAny, kReference},
    {"PutAttributesRequest", "attributes", 1, 10, kAny, kReference},
    {"RegisterTaskDefinitionRequest", "", kAnyMin, limits::kTaskDefinitionBytes, kAny, kQuotas},
    {"RegisterTaskDefinitionRequest", "containerDefinitions", 1, limits::kContainersPerTask, kAny,
     kQuotas},
    {"RegisterTaskDefinitionRequest", "family", 1, kNameMax, kName, kReference},
    {"RegisterTaskDefinitionRequest", "placementConstraints", kAnyMin, 10, kAny, kReference},
    {"RunTaskRequest", "capacityProviderStrategy", kAnyMin, 20, kAny, kReference},
    {"RunTaskRequest", "clientToken", kAnyMin, limits::kClientTokenChars, kVisibleAscii,
     kReference},
    {"RunTaskRequest", "count", 1, limits::kRunTaskCountMax, kAny, kReference},
    {"RunTaskRequest", "group", kAnyMin, kNameMax, kAny,
     "cotenant: a group is at most 255 characters"},
    {"RunTaskRequest", "overrides", kAnyMin, limits::kOverridesBytes, kAny, kReference},
    {"RunTaskRequest", "placementConstraints", kAnyMin, 10, kAny, kReference},
    {"RunTaskRequest", "placementStrategy", kAnyMin, 5, kAny, kReference},
    {"RunTaskRequest", "referenceId", kAnyMin, limits::kReferenceIdChars, kAny, kReference},
    {"RunTaskRequest", "startedBy", kAnyMin, limits::kStartedByChars, kStartedBy, kReference},
    {"Scale", "value", 0, 100, kAny, kReference},
    {"StartTaskRequest", "containerInstances", 1, 10, kAny, kReference},
    {"StartTaskRequest", "group", kAnyMin, kNameMax, kAny, "as RunTaskRequest.group"},
    {"StartTaskRequest", "overrides", kAnyMin, limits::kOverridesBytes, kAny, kReference},
    {"StartTaskRequest", "referenceId", kAnyMin, limits::kReferenceIdChars, kAny,
     "as RunTaskRequest.referenceId"},
    {"StartTaskRequest", "startedBy", kAnyMin, 36, kStartedBy, kReference},
    {"StopTaskRequest", "reason", kAnyMin, limits::kReasonChars, kAny,
     "cotenant; ECS API reference, Container.reason: 1024 characters"},
    {"Tmpfs", "size", 1, kAnyMax, kAny, "a size in MiB"},
    {"UpdateContainerInstancesStateRequest", "containerInstances", 1, 10, kAny, kReference},
    {"UpdateServiceRequest", "desiredCount", 0, 5000, kAny, kQuotas},
    {"UpdateServiceRequest", "healthCheckGracePeriodSeconds", 0, kAnyMax, kAny, kReference},
    {"UpdateServiceRequest", "placementConstraints", kAnyMin, 10, kAny, kReference},
    {"UpdateServiceRequest", "placementStrategy", kAnyMin, 5, kAny,
     "as CreateServiceRequest.placementStrategy"},
    {"UpdateTaskProtectionRequest", "expiresInMinutes", 1, 2880, kAny, kReference},
    {"UpdateTaskProtectionRequest", "tasks", kAnyMin, 10, kAny, kReference},
    {"Volume", "name", 1, kNameMax, kName, kReference},
};

constexpr bool row_less(const Bound& left, const Bound& right) {
  if (left.shape != right.shape) return left.shape < right.shape;
  return left.member < right.member;
}

static_assert(std::is_sorted(std::begin(kBounds), std::end(kBounds), row_less),
              "find_bound() searches by halves");

bool is_alphanumeric(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What a class allows beside letters and digits of ASCII.
std::string_view extra_characters(Characters characters) {
  switch (characters) {
    case kName:
      return "-_";
    case kStartedBy:
      return "-_/=.";
    case kAttributeName:
      return "-_./\\";
    case kAttributeValue:
      return "-_.@/\\: ";
    case kInstanceType:
      return ".*-";
    case kTag:
      return " _.:/=+-@";
    case kAny:
    case kVisibleAscii:
      break;
  }
  return "";
}

// The model says letters, separators and digits of any script (\p{L}\p{Z}\p{N}). Outside ASCII all
// but the control characters U+0080..U+009F are taken: telling letters from symbols there needs
// Unicode's tables, and a symbol in a tag harms nobody.
bool is_tag_sequence(std::string_view bytes) {
  return !(bytes.size() == 2 && bytes[0] == '\xC2' && static_cast<unsigned char>(bytes[1]) < 0xA0);
}

}  // namespace

std::span<const Bound> api_bounds() {
  return kBounds;
}

const Bound* find_bound(std::string_view shape, std::string_view member) {
  const Bound wanted{shape, member};
  const Bound* at = std::lower_bound(std::begin(kBounds), std::end(kBounds), wanted, row_less);
  if (at == std::end(kBounds) || row_less(wanted, *at)) return nullptr;
  return at;
}

bool is_added_value(std::string_view shape, std::string_view value) {
  return shape == "ClusterSettingName" && value == "cotenant.placementPolicy";
}

bool has_only(std::string_view text, Characters characters) {
  if (characters == kAny) return true;
  const std::string_view extra = extra_characters(characters);
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    const std::size_t bytes = utf8_sequence_bytes(text);
    if (bytes == 0) return false;
    if (bytes > 1) {
      if (characters != kTag || !is_tag_sequence(text.substr(0, bytes))) return false;
    } else if (characters == kVisibleAscii) {
      if (first < 33 || first > 126) return false;
    } else if (!is_alphanumeric(first) && extra.find(text.front()) == std::string_view::npos) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return true;
}

std::string_view describe(Characters characters) {
  switch (characters) {
    case kName:
      return "letters, digits, - and _";
    case kStartedBy:
      return "letters, digits and - _ / = .";
    case kVisibleAscii:
      return "visible ASCII characters (codes 33 to 126)";
    case kAttributeName:
      return "letters, digits and - _ . / \\";
    case kAttributeValue:
      return "letters, digits, spaces and - _ . @ / \\ :";
    case kInstanceType:
      return "letters, digits and . * -";
    case kTag:
      return "letters, digits, spaces and _ . : / = + - @";
    case kAny:
      break;
  }
  return "any characters";
}

}  // namespace cotenant::codec
