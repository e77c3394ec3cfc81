#include "server/api_table.h"

#include <array>

#include "server/api_functions.h"

namespace cotenant::server {
namespace {

struct Row {
  std::string_view name;
  ApiFunction function;
};

constexpr std::array kEcsOperations = {
    Row{"CreateCluster", api::create_cluster},
    Row{"UpdateClusterSettings", api::update_cluster_settings},
    Row{"DescribeClusters", api::describe_clusters},
    Row{"ListClusters", api::list_clusters},
    Row{"DeleteCluster", api::delete_cluster},
    Row{"RegisterTaskDefinition", api::register_task_definition},
    Row{"DescribeTaskDefinition", api::describe_task_definition},
    Row{"ListTaskDefinitions", api::list_task_definitions},
    Row{"ListTaskDefinitionFamilies", api::list_task_definition_families},
    Row{"DeregisterTaskDefinition", api::deregister_task_definition},
    Row{"DeleteTaskDefinitions", api::delete_task_definitions},
    Row{"RunTask", api::run_task},
    Row{"StartTask", api::start_task},
    Row{"StopTask", api::stop_task},
    Row{"DescribeTasks", api::describe_tasks},
    Row{"ListTasks", api::list_tasks},
    Row{"ListContainerInstances", api::list_container_instances},
    Row{"DescribeContainerInstances", api::describe_container_instances},
    Row{"UpdateContainerInstancesState", api::update_container_instances_state},
    Row{"DeregisterContainerInstance", api::deregister_container_instance},
    Row{"TagResource", api::tag_resource},
    Row{"UntagResource", api::untag_resource},
    Row{"ListTagsForResource", api::list_tags_for_resource},
    Row{"PutAccountSetting", api::put_account_setting},
    Row{"PutAccountSettingDefault", api::put_account_setting_default},
    Row{"DeleteAccountSetting", api::delete_account_setting},
    Row{"ListAccountSettings", api::list_account_settings},
    Row{"PutAttributes", api::put_attributes},
    Row{"DeleteAttributes", api::delete_attributes},
    Row{"ListAttributes", api::list_attributes},
};

constexpr std::array kOwnOperations = {
    Row{"OpenStream", api::open_stream},
    Row{"DescribeGpus", api::describe_gpus},
    Row{"CreateJoinToken", api::create_join_token},
    Row{"ListJoinTokens", api::list_join_tokens},
    Row{"RevokeJoinToken", api::revoke_join_token},
    Row{"ForgetAgent", api::forget_agent},
    Row{"Explain", api::explain},
};

template <std::size_t N>
ApiFunction find(const std::array<Row, N>& rows, std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.function;
  }
  return nullptr;
}

}  // namespace

ApiFunction find_ecs_operation(std::string_view name) {
  return find(kEcsOperations, name);
}

ApiFunction find_own_operation(std::string_view name) {
  return find(kOwnOperations, name);
}

std::string offered_operations() {
  std::string names;
  for (const Row& row : kEcsOperations) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace cotenant::server
