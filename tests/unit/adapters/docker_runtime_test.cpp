// DockerRuntime against a scripted HTTP client: what it asks, and what it makes of the answers.
// That a real engine agrees is the business of tests/integration/docker_runtime_test.cpp.
#include "adapters/docker_runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scripted_client.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;
using ports::ContainerPhase;
using std::chrono::milliseconds;

constexpr const char* kVersion =
    R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12"})";
constexpr const char* kNewVersion =
    R"({"Version":"28.0","ApiVersion":"1.48","MinAPIVersion":"1.24"})";

class DockerRuntimeTest : public testing::Test {
 protected:
  DockerRuntimeTest() { client_->on("GET /version", 200, kVersion); }

  std::shared_ptr<ScriptedClient> client_ = std::make_shared<ScriptedClient>();
  DockerRuntime runtime_{client_};
};

constexpr const char* kList =
    "GET /v1.41/containers/json?all=1&filters=%7B%22label%22%3A%5B%22k%3Dv%22%5D%7D";

std::string list_entry(const std::string& id, const std::string& state) {
  return R"({"Id":")" + id + R"(","Names":["/)" + id + R"("],"State":")" + state + R"("})";
}

std::string inspected(const std::string& id, const std::string& state, const std::string& started) {
  return R"({"Id":")" + id +
         R"(","Image":"sha256:i","Config":{"Image":"app:1"},"State":{"Status":")" + state +
         R"(","ExitCode":3,"StartedAt":")" + started + R"("}})";
}

TEST_F(DockerRuntimeTest, AsksTheVersionOnceAndSpeaksIt) {
  client_->on("POST /v1.41/containers/a/start", 204, "");
  EXPECT_TRUE(runtime_.start("a"));
  EXPECT_TRUE(runtime_.start("a"));
  EXPECT_EQ(client_->count("GET /version"), 1U);
}

TEST_F(DockerRuntimeTest, AsksTheVersionAgainWhenTheEngineWasAway) {
  client_->on("GET /version", 200, kNewVersion)
      .on("POST /v1.41/containers/a/start", ErrorCode::kIo)
      .on("POST /v1.48/containers/a/start", 204, "");
  const base::Status away = runtime_.start("a");
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(away.error().message, "start container a: scripted");
  EXPECT_TRUE(runtime_.start("a"));
}

TEST_F(DockerRuntimeTest, StatusesOfTheSimpleCalls) {
  using Do = base::Status (*)(DockerRuntime&);
  const Do start = [](DockerRuntime& r) { return r.start("a/b"); };
  const Do stop = [](DockerRuntime& r) { return r.stop("a/b", 7); };
  const Do remove = [](DockerRuntime& r) { return r.remove("a/b"); };
  constexpr const char* kStart = "POST /v1.41/containers/a%2Fb/start";
  constexpr const char* kStop = "POST /v1.41/containers/a%2Fb/stop?t=7";
  constexpr const char* kRemove = "DELETE /v1.41/containers/a%2Fb?v=1";
  constexpr const char* kNone = R"({"message":"No such container: a"})";
  struct Case {
    Do call;
    const char* request;
    int status;
    const char* body;
    std::optional<ErrorCode> want;
  };
  for (const Case& c : {
           Case{start, kStart, 204, "", std::nullopt},
           Case{start, kStart, 304, "", std::nullopt},
           Case{start, kStart, 404, kNone, ErrorCode::kNotFound},
           Case{start, kStart, 400, R"({"message":"no exec"})", ErrorCode::kClient},
           Case{start, kStart, 500, R"({"message":"no exec"})", ErrorCode::kClient},
           Case{stop, kStop, 204, "", std::nullopt},
           Case{stop, kStop, 304, "", std::nullopt},
           Case{stop, kStop, 404, kNone, ErrorCode::kNotFound},
           Case{remove, kRemove, 204, "", std::nullopt},
           Case{remove, kRemove, 404, kNone, std::nullopt},
           Case{remove, kRemove, 409,
                R"({"message":"removal of container a is already in progress"})", std::nullopt},
           Case{remove, kRemove, 409, R"({"message":"You cannot remove a running container a"})",
                ErrorCode::kClient},
           Case{remove, kRemove, 404, "not found", ErrorCode::kProtocol},
       }) {
    auto client = std::make_shared<ScriptedClient>();
    client->on("GET /version", 200, kVersion).on(c.request, c.status, c.body);
    DockerRuntime runtime(client);
    const base::Status got = c.call(runtime);
    EXPECT_EQ(got.has_value(), !c.want) << c.request << c.status;
    if (!got && c.want) {
      EXPECT_EQ(got.error().code, *c.want) << c.request << c.status;
    }
  }
}

TEST_F(DockerRuntimeTest, RefusesWhatTheEngineWouldMisread) {
  const base::Status negative = runtime_.stop("a", -1);
  ASSERT_FALSE(negative);
  EXPECT_PRED_FORMAT2(testing::IsSubstring, "-1 s is not in 0..86400", negative.error().message);
  EXPECT_FALSE(runtime_.stop("a", 86401));
  EXPECT_FALSE(runtime_.start(""));
  EXPECT_FALSE(runtime_.stop("", 1));
  EXPECT_FALSE(runtime_.remove(""));
  EXPECT_TRUE(client_->calls.empty());
}

TEST_F(DockerRuntimeTest, AStopWaitsLongerThanTheContainerMayTake) {
  client_->on("POST /v1.41/containers/a/stop?t=600", 204, "");
  EXPECT_TRUE(runtime_.stop("a", 600));
  EXPECT_GT(client_->timeouts.back(), std::chrono::seconds(600));
}

TEST_F(DockerRuntimeTest, CreateSendsTheSpecAndReturnsTheId) {
  client_->on("POST /v1.41/containers/create?name=web", 201, R"({"Id":"abc","Warnings":[]})")
      .on("POST /v1.41/containers/create?name=odd", 201, "{}");
  ports::ContainerSpec spec;
  spec.name = "web";
  spec.image = "app:1";
  const auto id = runtime_.create(spec);
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(*id, "abc");
  EXPECT_PRED_FORMAT2(testing::IsSubstring, R"({"Image":"app:1")", client_->bodies.back());
  spec.name = "odd";
  const auto odd = runtime_.create(spec);
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ErrorCode::kProtocol);
}

TEST_F(DockerRuntimeTest, ListInspectsAContainerOnce) {
  client_
      ->on(kList, 200, "[" + list_entry("run", "running") + "," + list_entry("out", "exited") + "]")
      .on("GET /v1.41/containers/run/json", 200,
          inspected("run", "running", "2026-12-01T11:51:15Z"))
      .on("GET /v1.41/containers/out/json", 200, inspected("out", "exited", "2026-12-01T11:51:15Z"))
      .on("GET /v1.41/images/sha256%3Ai/json", 200, R"({"RepoDigests":["app@sha256:d"]})");
  for (int poll = 0; poll < 3; ++poll) {
    const auto got = runtime_.list("k", "v");
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(got->size(), 2U);
    EXPECT_EQ((*got)[0].phase, ContainerPhase::kRunning);
    EXPECT_EQ((*got)[0].started_at_ms, 1796125875000);
    EXPECT_EQ((*got)[0].image_digest, "sha256:d");
    EXPECT_EQ((*got)[1].phase, ContainerPhase::kStopped);
    EXPECT_EQ((*got)[1].exit_code, 3);
  }
  EXPECT_EQ(client_->count("GET /v1.41/containers/run/json"), 1U);
  EXPECT_EQ(client_->count("GET /v1.41/containers/out/json"), 1U);
  EXPECT_EQ(client_->count("GET /v1.41/images/sha256%3Ai/json"), 1U);
}

TEST_F(DockerRuntimeTest, ListInspectsAgainAfterARestart) {
  client_->on(kList, 200, "[" + list_entry("run", "running") + "]")
      .on("GET /v1.41/containers/run/json", 200,
          inspected("run", "running", "2026-12-01T11:51:15Z"))
      .on("GET /v1.41/containers/run/json", 200,
          inspected("run", "running", "2026-12-01T11:51:16Z"))
      .on("GET /v1.41/containers/run/json", 200,
          inspected("run", "running", "2026-12-01T11:51:17Z"))
      .on("GET /v1.41/images/sha256%3Ai/json", 404, R"({"message":"No such image: sha256:i"})")
      .on("POST /v1.41/containers/run/start", 204, "");
  const auto started_at = [&] {
    const auto got = runtime_.list("k", "v");
    EXPECT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->at(0).image_digest, "sha256:i");  // its image was removed: the id is left
    return got->at(0).started_at_ms;
  };
  EXPECT_EQ(started_at(), 1796125875000);
  EXPECT_EQ(started_at(), 1796125875000);
  ASSERT_TRUE(runtime_.start("run"));  // by us
  EXPECT_EQ(started_at(), 1796125876000);
  client_->pieces = {// by somebody else
                     R"({"Type":"container","Action":"start","Actor":{"ID":"run"}})"
                     "\n"};
  EXPECT_FALSE(runtime_.watch("k", "v", [] {}, {}));
  EXPECT_EQ(started_at(), 1796125877000);
}

TEST_F(DockerRuntimeTest, ListLeavesOutWhatIsRemovedMeanwhile) {
  client_->on(kList, 200, "[" + list_entry("a", "exited") + "," + list_entry("b", "created") + "]")
      .on("GET /v1.41/containers/a/json", 404, R"({"message":"No such container: a"})")
      .on("GET /v1.41/containers/b/json", 200, inspected("b", "created", "0001-01-01T00:00:00Z"))
      .on("GET /v1.41/images/sha256%3Ai/json", 200, "{}");
  const auto got = runtime_.list("k", "v");
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->size(), 1U);
  EXPECT_EQ((*got)[0].id, "b");
}

TEST_F(DockerRuntimeTest, OneThatCannotBeInspectedDoesNotHideTheOthers) {
  client_
      ->on(
          kList, 200,
          "[" + list_entry("slow", "running") + "," + list_entry("odd", "exited") + "," +
              R"({"Id":"bad","Names":["/bad"],"State":"exited","Status":"Exited (137) 2 days ago"})" +
              "," + list_entry("good", "running") + "]")
      .on("GET /v1.41/containers/slow/json", ErrorCode::kTimeout)
      .on("GET /v1.41/containers/odd/json", 500, R"({"message":"disk"})")
      .on("GET /v1.41/containers/bad/json", 200, "{}")
      .on("GET /v1.41/containers/good/json", 200,
          inspected("good", "running", "2026-12-01T11:51:15Z"))
      .on("GET /v1.41/images/sha256%3Ai/json", 200, "{}");
  for (int poll = 0; poll < 2; ++poll) {
    const auto got = runtime_.list("k", "v");
    ASSERT_TRUE(got) << got.error().message;
    ASSERT_EQ(got->size(), 4U);
    EXPECT_EQ((*got)[0].phase, ContainerPhase::kRunning);
    EXPECT_EQ((*got)[1].phase, ContainerPhase::kStopped);
    EXPECT_EQ((*got)[1].exit_code, std::nullopt);
    EXPECT_EQ((*got)[2].exit_code, 137);
    EXPECT_EQ((*got)[3].started_at_ms, 1796125875000);
  }
  EXPECT_EQ(client_->count("GET /v1.41/containers/slow/json"), 1U) << "it took its time-out once";
}

TEST_F(DockerRuntimeTest, ListFailsRatherThanLeaveOutWhatItCannotSee) {
  client_->on(kList, 200, "[" + list_entry("a", "exited") + "]")
      .on(kList, 200, "{}")
      .on(kList, 200, "[")
      .on(kList, ErrorCode::kTimeout)
      .on("GET /v1.41/containers/a/json", ErrorCode::kIo);
  for (const ErrorCode want :
       {ErrorCode::kUnavailable, ErrorCode::kProtocol, ErrorCode::kProtocol, ErrorCode::kTimeout}) {
    const auto got = runtime_.list("k", "v");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, want) << got.error().message;
  }
}

TEST_F(DockerRuntimeTest, InfoJoinsItsThreeAnswers) {
  client_->on("GET /v1.41/info", 200, R"({"NCPU":2,"MemTotal":1073741824,"Runtimes":{"runc":{}}})")
      .on("GET /v1.41/networks", 200, R"([{"Name":"bridge","Driver":"bridge"}])");
  const auto info = runtime_.info();
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "Docker Engine");
  EXPECT_EQ(info->version, "20.10.24");
  EXPECT_EQ(info->memory_mib, 1024);
  EXPECT_TRUE(info->has_bridge);
}

TEST_F(DockerRuntimeTest, WatchCallsOncePerPieceAndSaysWhenTheEngineGoes) {
  const std::string start = R"({"Type":"container","Action":"start","Actor":{"ID":"a"}})"
                            "\n";
  client_->pieces = {start + start, start.substr(0, 10), start.substr(10),
                     R"({"Type":"container","Action":"attach","Actor":{"ID":"a"}})"
                     "\n"};
  int changes = 0;
  const base::Status ended = runtime_.watch("k", "v", [&] { ++changes; }, {});
  EXPECT_EQ(changes, 2);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kUnavailable);
  const std::string& call = client_->calls.back();
  EXPECT_EQ(call.find("GET /v1.41/events?since="), 0U) << call;
  EXPECT_PRED_FORMAT2(
      testing::IsSubstring,
      "&filters=%7B%22type%22%3A%5B%22container%22%5D%2C%22label%22%3A%5B%22k%3Dv%22%5D%7D", call);
}

TEST_F(DockerRuntimeTest, WatchEndsWellWhenToldTo) {
  std::stop_source stop;
  client_->pieces = {R"({"Type":"container","Action":"start","Actor":{"ID":"a"}})"
                     "\n"};
  EXPECT_TRUE(runtime_.watch(
      "k", "v", [&] { stop.request_stop(); }, stop.get_token()));
  client_->stream_result = base::fail(ErrorCode::kIo, "broken");
  const base::Status broken = runtime_.watch("k", "v", [] {}, {});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(broken.error().message, "watch containers: broken");
}

}  // namespace
}  // namespace cotenant::adapters
