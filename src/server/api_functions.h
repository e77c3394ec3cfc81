// One function for each operation; private to server/, listed in api_table.cpp.
#pragma once

#include "server/api_table.h"

namespace cotenant::server::api {

using base::Result;
using codec::Json;

Result<ApiReply> create_cluster(const ApiContext& context, const Json& body);
Result<ApiReply> update_cluster_settings(const ApiContext& context, const Json& body);
Result<ApiReply> describe_clusters(const ApiContext& context, const Json& body);
Result<ApiReply> list_clusters(const ApiContext& context, const Json& body);
Result<ApiReply> delete_cluster(const ApiContext& context, const Json& body);

Result<ApiReply> register_task_definition(const ApiContext& context, const Json& body);
Result<ApiReply> describe_task_definition(const ApiContext& context, const Json& body);
Result<ApiReply> list_task_definitions(const ApiContext& context, const Json& body);
Result<ApiReply> list_task_definition_families(const ApiContext& context, const Json& body);
Result<ApiReply> deregister_task_definition(const ApiContext& context, const Json& body);
Result<ApiReply> delete_task_definitions(const ApiContext& context, const Json& body);

Result<ApiReply> run_task(const ApiContext& context, const Json& body);
Result<ApiReply> start_task(const ApiContext& context, const Json& body);
Result<ApiReply> stop_task(const ApiContext& context, const Json& body);
Result<ApiReply> describe_tasks(const ApiContext& context, const Json& body);
Result<ApiReply> list_tasks(const ApiContext& context, const Json& body);

Result<ApiReply> list_container_instances(const ApiContext& context, const Json& body);
Result<ApiReply> describe_container_instances(const ApiContext& context, const Json& body);
Result<ApiReply> update_container_instances_state(const ApiContext& context, const Json& body);
Result<ApiReply> deregister_container_instance(const ApiContext& context, const Json& body);

Result<ApiReply> tag_resource(const ApiContext& context, const Json& body);
Result<ApiReply> untag_resource(const ApiContext& context, const Json& body);
Result<ApiReply> list_tags_for_resource(const ApiContext& context, const Json& body);

Result<ApiReply> put_account_setting(const ApiContext& context, const Json& body);
Result<ApiReply> put_account_setting_default(const ApiContext& context, const Json& body);
Result<ApiReply> delete_account_setting(const ApiContext& context, const Json& body);
Result<ApiReply> list_account_settings(const ApiContext& context, const Json& body);

Result<ApiReply> put_attributes(const ApiContext& context, const Json& body);
Result<ApiReply> delete_attributes(const ApiContext& context, const Json& body);
Result<ApiReply> list_attributes(const ApiContext& context, const Json& body);

// cotenant's own.
Result<ApiReply> open_stream(const ApiContext& context, const Json& body);
Result<ApiReply> describe_gpus(const ApiContext& context, const Json& body);
Result<ApiReply> explain(const ApiContext& context, const Json& body);
Result<ApiReply> create_join_token(const ApiContext& context, const Json& body);
Result<ApiReply> list_join_tokens(const ApiContext& context, const Json& body);
Result<ApiReply> revoke_join_token(const ApiContext& context, const Json& body);
Result<ApiReply> forget_agent(const ApiContext& context, const Json& body);

}  // namespace cotenant::server::api
