#include "codec/ecs_request.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "codec/api_bounds.h"
#include "codec/api_schema.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;

// A body as the decoders get it: it has passed the model's checks.
Json checked(const char* operation, const std::string& text) {
  auto body = Json::parse(text);
  EXPECT_TRUE(body) << text;
  const auto status = check_input(*find_operation(operation), *body);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  return *body;
}

TEST(EcsRequestTest, RegisterTaskDefinition) {
  const auto decoded = decode_register_task_definition(checked("RegisterTaskDefinition", R"({
    "family": "f", "networkMode": "none", "containerDefinitions": [
      {"name": "a", "image": "img", "cpu": 100, "memory": 200, "memoryReservation": 150,
       "essential": false, "entryPoint": ["/e"], "command": ["c", "d"],
       "environment": [{"name": "A", "value": "1"}, {"name": "B"}], "workingDirectory": "/w",
       "stopTimeout": 7, "dockerLabels": {"k": "v"}, "resourceRequirements": [
         {"type": "GPU", "sharingStrategy": {"nvidiaMps": {"memory": 8000, "maxComputePercent": 40}}}]},
      {"name": "b", "image": "img", "memoryReservation": 64}]})"));
  ASSERT_TRUE(decoded) << decoded.error().message;
  const core::TaskDefinition& definition = decoded->value.definition;
  EXPECT_EQ(definition.family, "f");
  EXPECT_EQ(definition.network_mode, core::NetworkMode::kNone);
  ASSERT_EQ(definition.containers.size(), 2U);
  const core::ContainerDefinition& a = definition.containers[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.image, "img");
  EXPECT_EQ(a.cpu_units, 100);
  EXPECT_EQ(a.memory_mib, 200);
  EXPECT_EQ(a.memory_reservation_mib, 150);
  EXPECT_FALSE(a.essential);
  EXPECT_EQ(a.entry_point, (std::vector<std::string>{"/e"}));
  EXPECT_EQ(a.command, (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(a.environment, (std::vector<core::EnvironmentVariable>{{"A", "1"}, {"B", ""}}));
  EXPECT_EQ(a.working_directory, "/w");
  EXPECT_EQ(a.stop_timeout_s, 7);
  EXPECT_EQ(a.docker_labels.at("k"), "v");
  EXPECT_TRUE(a.gpu == core::GpuRequest(core::SharedGpu{8000, 40}));
  const core::ContainerDefinition& b = definition.containers[1];
  EXPECT_EQ(b.cpu_units, 0);
  EXPECT_FALSE(b.memory_mib);
  EXPECT_EQ(b.memory_reservation_mib, 64);
  EXPECT_TRUE(b.essential);
  EXPECT_FALSE(b.stop_timeout_s);
  EXPECT_TRUE(b.gpu == core::GpuRequest(core::NoGpu{}));
  EXPECT_TRUE(decoded->warnings.empty());
  EXPECT_TRUE(definition.warnings.empty());
}

// The store keeps the document and decodes it again at each start.
TEST(EcsRequestTest, ADocumentRegistersAsItself) {
  const auto first = decode_register_task_definition(checked("RegisterTaskDefinition", R"({
    "family": "f", "taskRoleArn": "r", "tags": [{"key": "k", "value": "v"}], "x": 1,
    "requiresCompatibilities": ["EC2"], "containerDefinitions": [
      {"name": "a", "image": "i", "memory": 64, "y": 1, "links": null,
       "environment": [{"name": "A", "value": "1", "z": 1}]}]})"));
  ASSERT_TRUE(first) << first.error().message;
  const std::string& document = first->value.definition.document;
  EXPECT_EQ(document.find("\"x\""), std::string::npos);
  EXPECT_EQ(document.find("\"y\""), std::string::npos);
  EXPECT_EQ(document.find("\"z\""), std::string::npos);
  const auto second = decode_register_task_definition(checked("RegisterTaskDefinition", document));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->value.definition.document, document);
  EXPECT_EQ(second->warnings, first->warnings);
}

TEST(EcsRequestTest, CreateCluster) {
  EXPECT_EQ(decode_create_cluster(checked("CreateCluster", "{}"))->name, "default");
  EXPECT_EQ(decode_create_cluster(checked("CreateCluster", R"({"clusterName":"a-B_1"})"))->name,
            "a-B_1");
  const auto tagged = decode_create_cluster(
      checked("CreateCluster", R"({"clusterName":"a","tags":[{"key":"k","value":"v"}]})"));
  ASSERT_TRUE(tagged);
  EXPECT_EQ(tagged->tags, (core::Tags{{"k", "v"}}));
  const auto refused = decode_create_cluster(
      checked("CreateCluster", R"({"clusterName":"a","capacityProviders":["c"]})"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupportedFeature);
}

TEST(EcsRequestTest, RunTask) {
  const auto least = decode_run_task(checked("RunTask", R"({"taskDefinition":"f"})"));
  ASSERT_TRUE(least) << least.error().message;
  EXPECT_EQ(least->value.cluster, "default");
  EXPECT_EQ(least->value.definition.family, "f");
  EXPECT_FALSE(least->value.definition.revision);
  EXPECT_EQ(least->value.count, 1);
  EXPECT_EQ(least->value.group, "");
  EXPECT_TRUE(least->value.overrides.empty());
  EXPECT_EQ(least->value.client_token, "");
  EXPECT_TRUE(least->warnings.empty());

  const auto most = decode_run_task(checked("RunTask", R"({
    "cluster": "arn:aws:ecs:r:1:cluster/blue", "taskDefinition": "arn:aws:ecs:r:1:task-definition/f:3",
    "count": 10, "group": "g", "startedBy": "s", "clientToken": "t", "launchType": "EC2",
    "referenceId": "r", "propagateTags": "TASK_DEFINITION", "overrides": {"containerOverrides": [
      {"name": "a", "command": [], "environment": [{"name": "A", "value": "1"}]}, {"name": "b"}]}})"));
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->value.cluster, "blue");
  EXPECT_EQ(most->value.definition.revision, 3);
  EXPECT_EQ(most->value.count, 10);
  EXPECT_EQ(most->value.group, "g");
  EXPECT_EQ(most->value.started_by, "s");
  EXPECT_EQ(most->value.client_token, "t");
  EXPECT_EQ(most->value.overrides,
            (std::vector<core::ContainerOverride>{{"a", std::vector<std::string>{}, {{"A", "1"}}},
                                                  {"b", {}, {}}}));
  EXPECT_EQ(most->warnings.size(), 1U);
}

TEST(EcsRequestTest, TheParametersDigestSeesParametersAndNothingElse) {
  const auto digest = [](const std::string& members) {
    const auto decoded =
        decode_run_task(checked("RunTask", R"({"taskDefinition":"f")" + members + "}"));
    EXPECT_TRUE(decoded);
    return decoded->value.parameters_digest;
  };
  const std::string base = digest(R"(,"count":2,"group":"g")");
  EXPECT_EQ(base, digest(R"(,"group":"g","count":2)"));
  EXPECT_EQ(base, digest(R"(,"group":"g","count":2,"clientToken":"t","startedBy":null)"));
  EXPECT_NE(base, digest(R"(,"count":3,"group":"g")"));
  EXPECT_NE(base, digest(R"(,"count":2)"));
  EXPECT_NE(base, digest(R"(,"count":2,"group":"g","startedBy":"s")"));
  const std::string nested =
      digest(R"(,"overrides":{"containerOverrides":[{"name":"a","command":["x","y"]}]})");
  EXPECT_EQ(nested,
            digest(R"(,"overrides":{"containerOverrides":[{"command":["x","y"],"name":"a"}]})"));
  EXPECT_NE(nested,
            digest(R"(,"overrides":{"containerOverrides":[{"name":"a","command":["y","x"]}]})"));
}

TEST(EcsRequestTest, StopTask) {
  const auto by_id = decode_stop_task(checked("StopTask", R"({"task":"t1"})"));
  ASSERT_TRUE(by_id);
  EXPECT_EQ(by_id->cluster, "default");
  EXPECT_EQ(by_id->task_id, "t1");
  const auto by_arn = decode_stop_task(checked(
      "StopTask", R"({"task":"arn:aws:ecs:r:1:task/blue/t1","cluster":"blue","reason":"why"})"));
  ASSERT_TRUE(by_arn);
  EXPECT_EQ(by_arn->cluster, "blue");
  EXPECT_EQ(by_arn->task_id, "t1");
  EXPECT_EQ(by_arn->reason, "why");
  const auto old_arn =
      decode_stop_task(checked("StopTask", R"({"task":"arn:aws:ecs:r:1:task/t1"})"));
  ASSERT_TRUE(old_arn) << "ECS's older form without the cluster";
  EXPECT_EQ(old_arn->task_id, "t1");
}

TEST(EcsRequestTest, Refs) {
  const auto refs =
      decode_refs(checked("DescribeTasks", R"({"tasks":["t1","arn:aws:ecs:r:1:task/blue/t2"]})"),
                  "tasks", "task");
  ASSERT_TRUE(refs);
  ASSERT_EQ(refs->size(), 2U);
  EXPECT_EQ((*refs)[0].id, "t1");
  EXPECT_FALSE((*refs)[0].cluster);
  EXPECT_EQ((*refs)[1].id, "t2");
  EXPECT_EQ((*refs)[1].cluster, "blue");
  EXPECT_TRUE(decode_refs(Json::object(), "tasks", "task")->empty());
}

TEST(EcsRequestTest, PageTokensComeBackAsTheyWere) {
  const std::vector<std::string> keys = {"a", "default", "family:12", "a b\x01\xff",
                                         std::string(255, 'x')};
  for (const std::string& key : keys) {
    const std::string token = encode_page_token(key);
    EXPECT_TRUE(has_only(token, Characters::kVisibleAscii));
    const auto page = decode_page(Json::object({{"nextToken", token}, {"maxResults", 7}}));
    ASSERT_TRUE(page);
    EXPECT_EQ(page->after, key);
    EXPECT_EQ(page->max_results, 7U);
  }
  EXPECT_EQ(decode_page(Json::object())->max_results, base::limits::kPageItems);
  for (const char* garbage : {"x", "abc", "0g", "AB", "61 62"}) {
    const auto page = decode_page(Json::object({{"nextToken", garbage}}));
    ASSERT_FALSE(page) << garbage;
    EXPECT_EQ(page.error().code, ErrorCode::kInvalidParameter);
  }
}

TEST(EcsRequestTest, ListTasks) {
  struct Row {
    std::string body;
    bool none;
    core::DesiredStatus desired;
  };
  const auto running = core::DesiredStatus::kRunning;
  const auto stopped = core::DesiredStatus::kStopped;
  const Row rows[] = {
      {"{}", false, running},
      {R"({"desiredStatus":"RUNNING"})", false, running},
      {R"({"desiredStatus":"STOPPED"})", false, stopped},
      {R"({"desiredStatus":"PENDING"})", true, running},
      {R"({"launchType":"EC2"})", false, running},
      {R"({"launchType":"FARGATE"})", true, running},
      {R"({"serviceName":"s"})", false, running},
      {R"({"daemonName":"d"})", true, running},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.body);
    const auto query = decode_list_tasks(checked("ListTasks", row.body));
    ASSERT_TRUE(query);
    EXPECT_EQ(query->none, row.none);
    EXPECT_EQ(query->desired_status, row.desired);
    EXPECT_EQ(query->cluster, "default");
    EXPECT_FALSE(query->family);
    EXPECT_FALSE(query->started_by);
    EXPECT_FALSE(query->instance_id);
  }
  const auto query = decode_list_tasks(checked(
      "ListTasks",
      R"({"cluster":"c","family":"f","startedBy":"s","containerInstance":"i","maxResults":5})"));
  ASSERT_TRUE(query);
  EXPECT_EQ(query->cluster, "c");
  EXPECT_EQ(query->family, "f");
  EXPECT_EQ(query->started_by, "s");
  EXPECT_EQ(query->instance_id, "i");
  EXPECT_EQ(query->page.max_results, 5U);
}

}  // namespace
}  // namespace cotenant::codec
