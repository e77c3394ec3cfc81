#include "server/api_refusals.h"

#include "server/api_table.h"

namespace cotenant::server {
namespace {

constexpr std::string_view kServices = "services come later";
constexpr std::string_view kTaskSets =
    "task sets belong to services with an external deployment controller";
constexpr std::string_view kProtection =
    "protection is from the scaling of services, which come later";
constexpr std::string_view kCapacity =
    "capacity providers start machines of AWS; here agents join by themselves";
constexpr std::string_view kDaemons = "managed daemons come after services";
constexpr std::string_view kGateways =
    "it manages resources of AWS that have no counterpart on your own machines";
constexpr std::string_view kSettings = "cluster settings have nothing to govern yet";
constexpr std::string_view kAwsAgent =
    "it is for the agent of AWS; agents of cotenant join at /agent/v1";
constexpr std::string_view kSessions =
    "its sessions need the Session Manager of AWS; use `cotenant exec TASK CONTAINER -- COMMAND`";

struct RefusalRow {
  std::string_view operation;
  std::string_view reason;
};

// A row of an operation that api_table.cpp offers by now has no effect.
constexpr RefusalRow kRefusals[] = {
    {"AssociateGatewayWithCluster", kGateways},
    {"ContinueServiceDeployment", kServices},
    {"CreateCapacityProvider", kCapacity},
    {"CreateDaemon", kDaemons},
    {"CreateExpressGatewayService", kGateways},
    {"CreateGateway", kGateways},
    {"CreateService", kServices},
    {"CreateTaskSet", kTaskSets},
    {"DeleteCapacityProvider", kCapacity},
    {"DeleteDaemon", kDaemons},
    {"DeleteDaemonTaskDefinition", kDaemons},
    {"DeleteExpressGatewayService", kGateways},
    {"DeleteGateway", kGateways},
    {"DeleteService", kServices},
    {"DeleteTaskSet", kTaskSets},
    {"DescribeCapacityProviders", kCapacity},
    {"DescribeDaemon", kDaemons},
    {"DescribeDaemonDeployments", kDaemons},
    {"DescribeDaemonRevisions", kDaemons},
    {"DescribeDaemonTaskDefinition", kDaemons},
    {"DescribeExpressGatewayService", kGateways},
    {"DescribeGateway", kGateways},
    {"DescribeGatewayResources", kGateways},
    {"DescribeGatewayRoute", kGateways},
    {"DescribeServiceDeployments", kServices},
    {"DescribeServiceRevisions", kServices},
    {"DescribeServices", kServices},
    {"DescribeTaskSets", kTaskSets},
    {"DisassociateGatewayFromCluster", kGateways},
    {"DiscoverPollEndpoint", kAwsAgent},
    {"ExecuteCommand", kSessions},
    {"GetTaskProtection", kProtection},
    {"ListDaemonDeployments", kDaemons},
    {"ListDaemonTaskDefinitions", kDaemons},
    {"ListDaemons", kDaemons},
    {"ListGatewayClusterAssociations", kGateways},
    {"ListGatewayRoutes", kGateways},
    {"ListGateways", kGateways},
    {"ListServiceDeployments", kServices},
    {"ListServices", kServices},
    {"ListServicesByNamespace", kServices},
    {"PutClusterCapacityProviders", kCapacity},
    {"RegisterContainerInstance", kAwsAgent},
    {"RegisterDaemonTaskDefinition", kDaemons},
    {"StopServiceDeployment", kServices},
    {"SubmitAttachmentStateChanges", kAwsAgent},
    {"SubmitContainerStateChange", kAwsAgent},
    {"SubmitTaskStateChange", kAwsAgent},
    {"UpdateCapacityProvider", kCapacity},
    {"UpdateCluster", kSettings},
    {"UpdateContainerAgent", kAwsAgent},
    {"UpdateDaemon", kDaemons},
    {"UpdateExpressGatewayService", kGateways},
    {"UpdateGateway", kGateways},
    {"UpdateService", kServices},
    {"UpdateServicePrimaryTaskSet", kTaskSets},
    {"UpdateTaskProtection", kProtection},
    {"UpdateTaskSet", kTaskSets},
};

}  // namespace

std::string_view refusal_reason(std::string_view operation) {
  if (find_ecs_operation(operation) != nullptr) return {};
  for (const RefusalRow& row : kRefusals) {
    if (row.operation == operation) return row.reason;
  }
  return {};
}

}  // namespace cotenant::server
