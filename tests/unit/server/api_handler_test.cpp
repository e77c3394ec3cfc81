// What of the HTTP face is no API call: who may open an agent's connection. The calls are tested by
// tests/api.
#include "server/api_handler.h"

#include <gtest/gtest.h>

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
  ApiHandler handler(loop, hub, base::ArnFormat("us-east-1", "000000000000"));

  struct Row {
    std::string name;
    std::string target;
    std::vector<ports::HttpHeader> headers;
    bool accepted;
  };
  const Row rows[] = {
      {"an agent", "/agent/v1", {{"Host", "127.0.0.1:8484"}}, true},
      {"another version", "/agent/v2", {{"Host", "127.0.0.1:8484"}}, false},
      {"the API's path", "/", {{"Host", "127.0.0.1:8484"}}, false},
      {"a longer path", "/agent/v1/", {{"Host", "127.0.0.1:8484"}}, false},
      {"no Host", "/agent/v1", {}, false},
      {"rebound DNS", "/agent/v1", {{"Host", "evil.example"}}, false},
      {"a web page", "/agent/v1", {{"Host", "127.0.0.1"}, {"Origin", "http://x"}}, false},
  };
  for (const Row& row : rows) {
    ports::HttpRequest request;
    request.target = row.target;
    request.headers = row.headers;
    EXPECT_EQ(handler.upgrade(request) != nullptr, row.accepted) << row.name;
  }
}

}  // namespace
}  // namespace cotenant::server::test
