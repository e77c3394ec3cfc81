// Every kind of bad body, driven against the real server over TCP: a 4xx that says what is wrong, never
// a 5xx, and a control plane that answers as before.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "codec/json.h"
#include "fakes/memory_store.h"
#include "net/http_client.h"
#include "server/control_plane.h"

namespace cotenant::test {
namespace {

constexpr std::string_view kPrefix = "AmazonEC2ContainerServiceV20141113.";

std::string times(std::size_t count, std::string_view text) {
  std::string repeated;
  repeated.reserve(count * text.size());
  for (std::size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

class BadInputTest : public testing::Test {
 protected:
  BadInputTest() {
    server::ControlPlaneOptions options;
    options.port = 0;
    options.must_sign = false;
    auto plane =
        server::ControlPlane::start(options, std::make_unique<fakes::MemoryStore>(), nullptr);
    EXPECT_TRUE(plane) << plane.error().message;
    plane_ = std::move(*plane);
    auto client = net::make_http_client("http://127.0.0.1:" + std::to_string(plane_->port()));
    EXPECT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
  }

  base::Result<ports::HttpResponse> request(const std::string& method, const std::string& target,
                                            const std::string& operation, std::string body) {
    ports::HttpRequest request;
    request.method = method;
    request.target = target;
    if (!operation.empty()) {
      const bool whole = operation.find('.') != std::string::npos;
      request.headers.push_back(
          {"X-Amz-Target", whole ? operation : std::string(kPrefix) + operation});
    }
    request.headers.push_back({"Content-Type", "application/x-amz-json-1.1"});
    request.body = std::move(body);
    return client_->send(request, std::chrono::seconds(30));
  }

  // A clear refusal: 4xx, an exception's name, and the words that are wanted.
  void expect_refused(const std::string& operation, const std::string& body,
                      const std::string& want) {
    SCOPED_TRACE(operation + " " + body.substr(0, 200));
    const auto response = request("POST", "/", operation, body);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_GE(response->status, 400) << response->body;
    EXPECT_LT(response->status, 500) << response->body;
    const auto json = codec::Json::parse(response->body);
    ASSERT_TRUE(json) << response->body;
    EXPECT_NE(json->string_or("__type", ""), "");
    EXPECT_NE(json->string_or("message", "").find(want), std::string::npos) << response->body;
  }

  void expect_alive() {
    const auto response = request("POST", "/", "ListClusters", "{}");
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_NE(response->body.find("cluster/default"), std::string::npos) << response->body;
  }

  std::unique_ptr<server::ControlPlane> plane_;
  std::unique_ptr<ports::HttpClient> client_;
};

TEST_F(BadInputTest, BodiesThatAreNoRequest) {
  struct Row {
    std::string name;
    std::string body;
    std::string want;
  };
  const Row rows[] = {
      {"truncated", R"({"family": "f", "containerDef)", ""},
      {"a value instead of an object", "7", "must be an object"},
      {"null", "null", "must be an object"},
      {"an array", "[]", "must be an object"},
      {"text behind it", "{} {}", ""},
      {"no JSON", "family=f&cpu=1", ""},
      {"nested 10,000 deep", times(10000, "[") + times(10000, "]"), "deep"},
      {"objects nested 10,000 deep", times(10000, R"({"a":)") + "1" + times(10000, "}"), "deep"},
      {"not UTF-8", "{\"family\": \"\xff\xfe\"}", "UTF-8"},
      {"an overlong NUL", "{\"family\": \"\xc0\x80\"}", "UTF-8"},
      {"half a surrogate pair", R"({"family": "\ud800"})", ""},
      {"a key twice", R"({"family": "a", "family": "b"})", "family"},
      {"a number without end", R"({"family": 1e400})", ""},
      {"not a number", R"({"family": NaN})", ""},
      {"a byte order mark", "\xef\xbb\xbf{}", ""},
      {"a NUL behind it", std::string("{}\0", 3), ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    expect_refused("RegisterTaskDefinition", row.body, row.want);
  }
  // An empty body is an empty object, as AWS takes it: what is missing is named.
  expect_refused("RegisterTaskDefinition", "", "is required");
  expect_alive();
}

TEST_F(BadInputTest, BodiesThatAreTooLarge) {
  const auto huge = request("POST", "/", "RegisterTaskDefinition", times(10 * 1024 * 1024, "x"));
  // The server need not read all of it: it answers, or it hangs up on whoever goes on sending.
  if (huge) {
    EXPECT_GE(huge->status, 400);
    EXPECT_LT(huge->status, 500);
  }
  expect_alive();

  // 64 KiB of task definition are taken, one byte more names the limit.
  const std::string head =
      R"({"family":"f","containerDefinitions":[{"name":"c","image":"i","memory":64,)"
      R"("environment":[{"name":"A","value":")";
  const std::string tail = R"("}]}]})";
  const auto sized = [&](std::size_t bytes) {
    return head + times(bytes - head.size() - tail.size(), "x") + tail;
  };
  const auto most =
      request("POST", "/", "RegisterTaskDefinition", sized(base::limits::kTaskDefinitionBytes));
  ASSERT_TRUE(most) << most.error().message;
  EXPECT_EQ(most->status, 200) << most->body;
  expect_refused("RegisterTaskDefinition", sized(base::limits::kTaskDefinitionBytes + 1), "65536");
  expect_alive();
}

// Each wrong value in each kind of member: the member is named.
TEST_F(BadInputTest, ValuesOfTheWrongKind) {
  const std::vector<std::string> values = {
      R"("4096")", "1.5",  "-1", "0",  "2147483648", "9223372036854775808", "1e400", "1e2",
      "-0.0",      "true", "[]", "{}", R"("")",      "[[[[1]]]]",           "1e-400"};
  struct Place {
    std::string operation;
    std::string body;                    // % is the value
    std::string member;                  // of which the refusal speaks
    std::vector<std::string> fine = {};  // values that are right there
  };
  const std::string container = R"({"family":"f","containerDefinitions":[{"name":"c","image":"i",)";
  const Place places[] = {
      {"RegisterTaskDefinition", container + R"("memory":%}]})", "memory"},
      {"RegisterTaskDefinition", container + R"("memory":64,"cpu":%}]})", "cpu", {"0"}},
      {"RegisterTaskDefinition",
       container + R"("memory":64,"resourceRequirements":[{"type":"GPU","sharingStrategy":)"
                   R"({"nvidiaMps":{"memory":%}}}]}]})",
       "memory"},
      {"RegisterTaskDefinition",
       container + R"("memory":64,"resourceRequirements":[{"type":"GPU","sharingStrategy":)"
                   R"({"nvidiaMps":{"memory":5,"maxComputePercent":%}}}]}]})",
       "maxComputePercent"},
      {"RunTask", R"({"taskDefinition":"f","count":%})", "count"},
      {"RunTask",
       R"({"taskDefinition":"f","overrides":{"containerOverrides":[{"name":"c","memory":%}]}})",
       "memory",
       {"2147483648"}},
      {"RunTask",
       R"({"taskDefinition":"f","overrides":{"containerOverrides":[{"name":"c","cpu":%}]}})",
       "cpu",
       {"0"}},
      {"ListTasks", R"({"maxResults":%})", "maxResults"},
      {"DescribeTasks", R"({"tasks":%})", "tasks"},
  };
  for (const Place& place : places) {
    for (const std::string& value : values) {
      if (std::find(place.fine.begin(), place.fine.end(), value) != place.fine.end()) continue;
      std::string body = place.body;
      body.replace(body.find('%'), 1, value);
      // A number that is none is refused before its member is looked at.
      const bool readable = value != "1e400" && value != "9223372036854775808";
      expect_refused(place.operation, body, readable ? place.member : "");
    }
  }
  expect_alive();
}

TEST_F(BadInputTest, MembersOfTheWrongKind) {
  const std::pair<std::string, std::string> rows[] = {
      {"RegisterTaskDefinition", R"({"family":7,"containerDefinitions":[]})"},
      {"RegisterTaskDefinition", R"({"family":"f","containerDefinitions":{}})"},
      {"RegisterTaskDefinition", R"({"family":"f","containerDefinitions":[null]})"},
      {"RegisterTaskDefinition", R"({"family":"f","containerDefinitions":[7]})"},
      {"RunTask", R"({"taskDefinition":[]})"},
      {"RunTask", R"({"taskDefinition":"f","tags":[{"key":7}]})"},
      {"StopTask", R"({"task":{}})"},
      {"StopTask", R"({"task":"0123","reason":")" + times(1025, "x") + R"("})"},
      {"DescribeClusters", R"({"clusters":"default"})"},
      {"DescribeClusters", R"({"clusters":[7]})"},
      {"TagResource", R"({"resourceArn":"x","tags":"a=b"})"},
      {"ListTasks", R"({"nextToken":"zz"})"},
      {"ListTasks", R"({"desiredStatus":"running"})"},
      {"DeregisterContainerInstance", R"({"containerInstance":"i","force":"yes"})"},
      {"PutAccountSetting", R"({"name":"containerInsights","value":true})"},
      {"Cotenant.DescribeGpus", R"({"cluster":7})"},
  };
  for (const auto& [operation, body] : rows) expect_refused(operation, body, "");
  expect_alive();
}

TEST_F(BadInputTest, TargetsAndMethodsThatAreNone) {
  for (const std::string operation :
       {"Nope", "CreateService", "runtask", "x.RunTask", "AmazonEC2ContainerServiceV20141113.",
        "Cotenant.Nope", "."}) {
    expect_refused(operation, "{}", "");
  }
  struct Row {
    std::string method;
    std::string target;
    int status;
  };
  const Row rows[] = {{"GET", "/", 404},        {"POST", "/v1", 404},     {"PUT", "/", 404},
                      {"DELETE", "/", 404},     {"GET", "/healthz", 200}, {"POST", "/healthz", 404},
                      {"GET", "/metrics", 200}, {"GET", "/../etc", 404}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.method + " " + row.target);
    // With a body, also where none belongs.
    const auto response = request(row.method, row.target, "", R"({"taskDefinition":"f"})");
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, row.status) << response->body;
  }
  expect_alive();
}

}  // namespace
}  // namespace cotenant::test
