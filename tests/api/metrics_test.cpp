// GET /metrics: what is counted, as it happens, and what Prometheus' own checker says of it.
#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "test_plane.h"

namespace cotenant::test {
namespace {

ports::HttpResponse get(TestPlane& plane, const std::string& target) {
  ports::HttpRequest request;
  request.method = "GET";
  request.target = target;
  request.headers = {{"Host", "127.0.0.1:8484"}};
  return plane.send(request);
}

void call(TestPlane& plane, const std::string& operation, const std::string& body) {
  ports::HttpRequest request;
  request.method = "POST";
  request.target = "/";
  request.headers = {{"Host", "127.0.0.1:8484"},
                     {"X-Amz-Target", "AmazonEC2ContainerServiceV20141113." + operation}};
  request.body = body;
  plane.send(request);
}

void expect_lines(TestPlane& plane, const std::vector<std::string>& lines) {
  const ports::HttpResponse response = get(plane, "/metrics");
  EXPECT_EQ(response.status, 200);
  for (const std::string& line : lines) {
    EXPECT_NE(("\n" + response.body).find("\n" + line + "\n"), std::string::npos)
        << line << "\nis not in\n"
        << response.body;
  }
}

// A plane with one GPU of 1000 MiB, of which a task has 600.
void fill(TestPlane& plane) {
  core::InstanceRegistration registration;
  registration.id = "i1";
  registration.cluster = "default";
  registration.cpu_units = 4096;
  registration.memory_mib = 4096;
  registration.attributes.emplace(core::kSharingAttribute, "");
  registration.gpus = {{"GPU-a", "L4", 1000, 48}};
  ASSERT_TRUE(plane.connect(registration));
  call(plane, "RegisterTaskDefinition", R"({"family": "f", "containerDefinitions": [{"name": "c",
    "image": "i", "memory": 64, "resourceRequirements": [{"type": "GPU",
      "sharingStrategy": {"nvidiaMps": {"memory": 600}}}]}]})");
  call(plane, "RunTask", R"({"taskDefinition": "f", "count": 2})");
  call(plane, "RunTask", R"({"taskDefinition": 7})");
  call(plane, "NoSuchOperation", "{}");
}

const std::vector<std::string>& state_lines() {
  static const std::vector<std::string> lines = {
      "cotenant_tasks{last_status=\"PENDING\"} 1",
      "cotenant_tasks{last_status=\"STOPPED\"} 0",
      "cotenant_container_instances{status=\"ACTIVE\"} 1",
      "cotenant_gpus{sharing_mode=\"IDLE\"} 0",
      "cotenant_gpus{sharing_mode=\"NVIDIA_MPS\"} 1",
      "cotenant_gpu_memory_reserved_bytes{cluster=\"default\",container_instance=\"i1\","
      "gpu=\"GPU-a\"} 629145600",
      "cotenant_gpu_memory_capacity_bytes{cluster=\"default\",container_instance=\"i1\","
      "gpu=\"GPU-a\"} 1048576000",
      "cotenant_store_writable 1",
  };
  return lines;
}

TEST(MetricsTest, CountsWhatHappensAsItHappens) {
  TestPlane plane;
  fill(plane);
  expect_lines(plane, state_lines());
  expect_lines(plane, {
                          "cotenant_agents_connected 1",
                          "cotenant_tasks_placed_total 1",
                          "cotenant_tasks_not_placed_total{reason=\"RESOURCE:GPU\"} 1",
                          "cotenant_api_requests_total{operation=\"RunTask\",outcome=\"ok\"} 1",
                          "cotenant_api_requests_total{operation=\"RunTask\",outcome="
                          "\"SerializationException\"} 1",
                          "cotenant_api_requests_total{operation=\"unknown\",outcome="
                          "\"UnknownOperationException\"} 1",
                          "cotenant_api_request_duration_seconds_count{operation=\"RunTask\"} 2",
                      });
  // After a restart the state is counted from the store; the counters begin anew.
  ASSERT_TRUE(plane.restart());
  expect_lines(plane, state_lines());
  expect_lines(plane, {"cotenant_agents_connected 0", "cotenant_tasks_placed_total 0"});
  // What is gone is no series any more.
  call(plane, "DeregisterContainerInstance", R"({"containerInstance": "i1", "force": true})");
  expect_lines(plane, {"cotenant_tasks{last_status=\"PENDING\"} 0",
                       "cotenant_tasks{last_status=\"STOPPED\"} 1",
                       "cotenant_container_instances{status=\"INACTIVE\"} 1"});
  plane.advance(2 * 3600 * 1000);
  const std::string text = get(plane, "/metrics").body;
  EXPECT_EQ(text.find("GPU-a"), std::string::npos) << text;
  expect_lines(plane, {"cotenant_tasks{last_status=\"STOPPED\"} 0"});
}

TEST(MetricsTest, HealthIsHonest) {
  TestPlane plane;
  EXPECT_EQ(get(plane, "/healthz").status, 200);
  plane.set_store_works(false);
  call(plane, "CreateCluster", R"({"clusterName": "x"})");
  const ports::HttpResponse sick = get(plane, "/healthz");
  EXPECT_EQ(sick.status, 503);
  EXPECT_NE(sick.body.find("the store refuses writes"), std::string::npos) << sick.body;
  expect_lines(plane, {"cotenant_store_writable 0"});
  plane.set_store_works(true);
  EXPECT_EQ(get(plane, "/healthz").status, 200);
  expect_lines(plane, {"cotenant_store_writable 1"});
}

// Prometheus' own checker: form, names, units, help texts.
TEST(MetricsTest, PromtoolFindsNothing) {
  ASSERT_EQ(::system("command -v promtool >/dev/null"), 0)
      << "promtool is not installed: scripts/install-deps.sh test";
  TestPlane plane;
  fill(plane);
  std::string folder = testing::TempDir() + "metrics-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/metrics") << get(plane, "/metrics").body;
  const std::string command = "promtool check metrics <'" + folder + "/metrics' 2>&1";
  std::string said;
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  for (int c = 0; (c = ::fgetc(pipe)) != EOF;) said.push_back(static_cast<char>(c));
  EXPECT_EQ(::pclose(pipe), 0) << said;
  EXPECT_EQ(said, "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cotenant::test
