// One function for each operation; private to server/, listed in api_table.cpp.
#pragma once

#include "server/api_table.h"

namespace cotenant::server::api {

using base::Result;
using codec::Json;

Result<ApiReply> create_cluster(const ApiContext& context, const Json& body);
Result<ApiReply> describe_clusters(const ApiContext& context, const Json& body);
Result<ApiReply> list_clusters(const ApiContext& context, const Json& body);

Result<ApiReply> register_task_definition(const ApiContext& context, const Json& body);
Result<ApiReply> describe_task_definition(const ApiContext& context, const Json& body);
Result<ApiReply> list_task_definitions(const ApiContext& context, const Json& body);

Result<ApiReply> run_task(const ApiContext& context, const Json& body);
Result<ApiReply> stop_task(const ApiContext& context, const Json& body);
Result<ApiReply> describe_tasks(const ApiContext& context, const Json& body);
Result<ApiReply> list_tasks(const ApiContext& context, const Json& body);

Result<ApiReply> list_container_instances(const ApiContext& context, const Json& body);
Result<ApiReply> describe_container_instances(const ApiContext& context, const Json& body);

// cotenant's own.
Result<ApiReply> describe_gpus(const ApiContext& context, const Json& body);
Result<ApiReply> create_join_token(const ApiContext& context, const Json& body);
Result<ApiReply> list_join_tokens(const ApiContext& context, const Json& body);
Result<ApiReply> revoke_join_token(const ApiContext& context, const Json& body);
Result<ApiReply> forget_agent(const ApiContext& context, const Json& body);

}  // namespace cotenant::server::api
