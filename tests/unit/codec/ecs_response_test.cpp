#include "codec/ecs_response.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "../core/builders.h"
#include "codec/api_schema.h"

namespace cotenant::codec {
namespace {

const base::ArnFormat kArns("eu-west-1", "123456789012");

// The reply of this operation that has the value as this member, checked against ECS's model.
void expect_of_model(const char* operation, const char* member, Json value, bool list) {
  Json reply = Json::object();
  reply.set(member, list ? Json::array().push(std::move(value)) : std::move(value));
  const auto status = check_output(*find_operation(operation), reply);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
}

core::TaskDefinition definition(core::GpuRequest gpu) {
  core::TaskDefinition definition =
      core::test::definition("f", {core::test::container("main", gpu)});
  definition.revision = 3;
  definition.registered_at_ms = 1234567;
  return definition;
}

core::Task task() {
  core::Task task;
  task.id = "t1";
  task.cluster = "blue";
  task.instance_id = "i1";
  task.family = "f";
  task.revision = 3;
  task.group = "g";
  task.created_at_ms = 1500;
  core::TaskContainer container;
  container.name = "main";
  container.id = "c1";
  task.containers = {container};
  return task;
}

TEST(EcsResponseTest, Cluster) {
  const Json json = encode_cluster(kArns, {"blue", 5}, {2, 3, 4});
  EXPECT_EQ(json.string_or("clusterArn", ""), "arn:aws:ecs:eu-west-1:123456789012:cluster/blue");
  EXPECT_EQ(json.integer_or("registeredContainerInstancesCount", 0), 2);
  EXPECT_EQ(json.integer_or("runningTasksCount", 0), 3);
  EXPECT_EQ(json.integer_or("pendingTasksCount", 0), 4);
  expect_of_model("CreateCluster", "cluster", json, false);
}

TEST(EcsResponseTest, TaskDefinition) {
  const Json shared = encode_task_definition(kArns, definition(core::SharedGpu{5, {}}));
  EXPECT_EQ(shared.string_or("taskDefinitionArn", ""),
            "arn:aws:ecs:eu-west-1:123456789012:task-definition/f:3");
  ASSERT_EQ(shared.array_or_empty("requiresAttributes").size(), 1U);
  EXPECT_EQ(shared.find("registeredAt")->as_double(), 1234.567);
  expect_of_model("DescribeTaskDefinition", "taskDefinition", shared, false);
  const Json whole = encode_task_definition(kArns, definition(core::WholeGpus{1, false}));
  EXPECT_TRUE(whole.array_or_empty("requiresAttributes").empty());
}

TEST(EcsResponseTest, ATaskShowsOnlyWhatHasHappened) {
  const Json json = encode_task(kArns, task(), definition(core::NoGpu{}));
  expect_of_model("DescribeTasks", "tasks", json, true);
  EXPECT_EQ(json.find("createdAt")->as_double(), 1.5);
  for (const char* member : {"startedAt", "stoppingAt", "executionStoppedAt", "stoppedAt",
                             "stopCode", "stoppedReason", "startedBy"}) {
    EXPECT_EQ(json.find(member), nullptr) << member;
  }
  const Json& container = json.array_or_empty("containers").at(0);
  for (const char* member : {"exitCode", "reason", "runtimeId", "imageDigest", "gpuIds",
                             "gpuSharingStrategy", "memoryReservation"}) {
    EXPECT_EQ(container.find(member), nullptr) << member;
  }
  EXPECT_EQ(container.string_or("containerArn", ""),
            "arn:aws:ecs:eu-west-1:123456789012:container/blue/t1/c1");
}

TEST(EcsResponseTest, AStoppedTaskShowsItsEnd) {
  core::Task ended = task();
  ended.last_status = core::TaskStatus::kStopped;
  ended.desired_status = core::DesiredStatus::kStopped;
  ended.stop_code = core::StopCode::kEssentialContainerExited;
  ended.stopped_reason = "Essential container in task exited";
  ended.started_by = "me";
  ended.started_at_ms = 2000;
  ended.stopping_at_ms = 3000;
  ended.execution_stopped_at_ms = 4000;
  ended.stopped_at_ms = 5000;
  ended.overrides = {{"main", std::vector<std::string>{"x"}, {{"A", "1"}}}};
  core::TaskContainer& part = ended.containers[0];
  part.status = core::ContainerStatus::kStopped;
  part.exit_code = 137;
  part.reason = "OutOfMemoryError: x";
  part.runtime_id = "engine";
  part.image_digest = "sha256:1";
  part.gpu_uuids = {"GPU-a"};
  const Json json = encode_task(kArns, ended, definition(core::SharedGpu{8000, 40}));
  expect_of_model("DescribeTasks", "tasks", json, true);
  EXPECT_EQ(json.string_or("stopCode", ""), "EssentialContainerExited");
  EXPECT_EQ(json.find("stoppedAt")->as_double(), 5.0);
  const Json& container = json.array_or_empty("containers").at(0);
  EXPECT_EQ(container.integer_or("exitCode", 0), 137);
  EXPECT_EQ(container.array_or_empty("gpuIds").at(0).as_string(), "GPU-a");
  const Json* mps = container.find("gpuSharingStrategy")->find("nvidiaMps");
  EXPECT_EQ(mps->integer_or("memory", 0), 8000);
  EXPECT_EQ(mps->integer_or("maxComputePercent", 0), 40);
}

TEST(EcsResponseTest, Instance) {
  core::Instance instance = core::test::instance(
      "i1", 1,
      {core::test::shared_gpu({{"t1", 30000}, {"t2", 10000}}), core::test::dedicated_gpu("t3"),
       core::test::unreadable_gpu(), core::test::idle_gpu()});
  instance.used_cpu_units = 24;
  instance.used_memory_mib = 36;
  instance.registration.reserved_ports = {22};
  instance.registration.attributes["zone"] = "a";
  Json json = encode_instance(kArns, instance, {1, 2});
  expect_of_model("DescribeContainerInstances", "containerInstances", json, true);

  const Json::Array& devices = json.array_or_empty("gpuDevices");
  ASSERT_EQ(devices.size(), 4U);
  struct Row {
    const char* mode;
    std::int64_t total_mib;
    std::int64_t left_mib;
    std::int64_t containers;
  };
  const Row rows[] = {{"NVIDIA_MPS", 80000, 40000, 2},
                      {"DEDICATED", 80000, 0, 1},
                      {"IDLE", 0, 0, 0},
                      {"IDLE", 80000, 80000, 0}};
  for (std::size_t gpu = 0; gpu < devices.size(); ++gpu) {
    SCOPED_TRACE(gpu);
    EXPECT_EQ(devices[gpu].string_or("sharingMode", ""), rows[gpu].mode);
    EXPECT_EQ(devices[gpu].integer_or("totalMemoryInMiB", -1), rows[gpu].total_mib);
    EXPECT_EQ(devices[gpu].integer_or("remainingMemoryInMiB", -1), rows[gpu].left_mib);
    EXPECT_EQ(devices[gpu].integer_or("containerCount", -1), rows[gpu].containers);
  }
  const auto resource = [&](const char* list, const char* name) {
    for (const Json& entry : json.array_or_empty(list)) {
      if (entry.string_or("name", "") == name) return entry;
    }
    return Json();
  };
  EXPECT_EQ(resource("registeredResources", "CPU").integer_or("integerValue", 0), 16 * 1024);
  EXPECT_EQ(resource("remainingResources", "CPU").integer_or("integerValue", 0), 16 * 1024 - 24);
  EXPECT_EQ(resource("remainingResources", "MEMORY").integer_or("integerValue", 0), 64 * 1024 - 36);
  EXPECT_EQ(
      resource("registeredResources", "PORTS").array_or_empty("stringSetValue").at(0).as_string(),
      "22");
  EXPECT_EQ(resource("registeredResources", "GPU").array_or_empty("stringSetValue").size(), 4U);
  EXPECT_EQ(resource("remainingResources", "GPU").array_or_empty("stringSetValue").size(), 2U);

  instance.registration.attributes.clear();
  EXPECT_EQ(encode_instance(kArns, instance, {1, 2}).find("gpuDevices"), nullptr);
}

TEST(EcsResponseTest, FailuresAndErrors) {
  EXPECT_EQ(encode_failure("a", "MISSING", "").dump(), R"({"arn":"a","reason":"MISSING"})");
  EXPECT_EQ(encode_failure("", "AGENT", "d").dump(), R"({"reason":"AGENT","detail":"d"})");
  EXPECT_EQ(encode_error({base::ErrorCode::kConflict, "a \"b\"\n"}),
            R"({"__type":"ConflictException","message":"a \"b\"\n"})");
  EXPECT_EQ(encode_error({base::ErrorCode::kIo, "x"}),
            R"({"__type":"ServerException","message":"x"})");
}

}  // namespace
}  // namespace cotenant::codec
