// What of the HTTP face is no API call: who may open an agent's connection. The calls are tested by
// tests/api.
#include "server/api_handler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "server_world.h"

namespace cotenant::server::test {
namespace {

TEST(ApiHandlerTest, AgentsConnectAtTheirPathFromLoopback) {
  fakes::MemoryStore store;
  const fakes::SettableClock clock{kStart};
  auto engine = CoreEngine::load(store, clock, 1);
  ASSERT_TRUE(engine);
  CoreLoop loop(std::move(*engine), nullptr);
  AgentHub hub(loop);
  loop.set_effect_sink(&hub);
  Metrics metrics;
  ApiHandler handler(loop, hub, metrics, base::ArnFormat("us-east-1", "000000000000"));

  struct Row {
    std::string name;
    std::string target;
    std::vector<ports::HttpHeader> headers;
    int status;
  };
  const Row rows[] = {
      {"an agent", "/agent/v1", {{"Host", "127.0.0.1:8484"}}, 101},
      {"another version", "/agent/v2", {{"Host", "127.0.0.1:8484"}}, 404},
      {"the API's path", "/", {{"Host", "127.0.0.1:8484"}}, 404},
      {"a longer path", "/agent/v1/", {{"Host", "127.0.0.1:8484"}}, 404},
      {"no Host", "/agent/v1", {}, 403},
      {"rebound DNS", "/agent/v1", {{"Host", "evil.example"}}, 403},
      {"a web page", "/agent/v1", {{"Host", "127.0.0.1"}, {"Origin", "http://x"}}, 403},
  };
  for (const Row& row : rows) {
    ports::HttpRequest request;
    request.target = row.target;
    request.headers = row.headers;
    std::promise<int> status;  // 101: accepted
    handler.upgrade(request, [&](const ports::HttpUpgrade& answer) {
      status.set_value(answer ? 101 : answer.error().status);
    });
    EXPECT_EQ(status.get_future().get(), row.status) << row.name;
  }
}

TEST(ApiHandlerTest, HealthSaysWhenTooManyRequestsWait) {
  fakes::MemoryStore store;
  const fakes::SettableClock clock{kStart};
  auto engine = CoreEngine::load(store, clock, 1);
  ASSERT_TRUE(engine);
  CoreLoop loop(std::move(*engine), nullptr);
  AgentHub hub(loop);
  loop.set_effect_sink(&hub);
  Metrics metrics;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  ASSERT_TRUE(loop.post(core::Expire{}, [released](const base::Result<core::Reply>&,
                                                   const core::State&) { released.wait(); }));
  ports::HttpRequest request;
  request.target = "/healthz";
  request.headers = {{"Host", "127.0.0.1:8484"}};
  constexpr int kFarTooMany = 100'000;
  std::atomic<int> healthy{0};
  std::atomic<int> unhealthy{0};
  std::string words;
  int sent = 0;
  {
    ApiHandler handler(loop, hub, metrics, base::ArnFormat("us-east-1", "000000000000"));
    // All workers wait for the loop; then the queue fills.
    while (unhealthy == 0 && sent < kFarTooMany) {
      ++sent;
      handler.handle(request, [&](const ports::HttpResponse& answer) {
        if (answer.status == 200) ++healthy;
        if (answer.status != 503) return;
        words = answer.body;
        ++unhealthy;
      });
    }
    release.set_value();
  }
  EXPECT_EQ(unhealthy, 1);
  EXPECT_NE(words.find("too many requests are waiting"), std::string::npos) << words;
  EXPECT_EQ(healthy, sent - 1) << "those that waited are answered";
}

}  // namespace
}  // namespace cotenant::server::test
