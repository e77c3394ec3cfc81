#include "server/agent_access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "fakes/settable_clock.h"
#include "server/request_guard.h"

namespace cotenant::server::test {
namespace {

const std::string kInstance(32, 'a');
const std::string kOtherInstance(32, 'b');
const std::string kKey(40, 'k');
const std::string kOtherKey(40, 'o');

class AgentAccessTest : public testing::Test {
 protected:
  AgentAccessTest() {
    std::filesystem::create_directories(folder_);
    open();
  }
  ~AgentAccessTest() override { std::filesystem::remove_all(folder_); }

  void open() {
    auto access = AgentAccess::open(path_, clock_);
    ASSERT_TRUE(access) << access.error().message;
    access_ = std::move(*access);
  }

  static ports::HttpRequest request(const std::string& instance, const std::string& key,
                                    const std::string& token = "") {
    ports::HttpRequest request;
    request.target = "/agent/v1";
    request.headers = {
        {"Host", "127.0.0.1"}, {kInstanceIdHeader, instance}, {kInstanceKeyHeader, key}};
    if (!token.empty()) request.headers.push_back({"Authorization", "Bearer " + token});
    return request;
  }

  // "" when admitted, else the refusal's name and message.
  std::string admit(const ports::HttpRequest& request, bool trusted = false) {
    auto instance = access_->admit(request, trusted);
    if (!instance) {
      return std::string(base::error_name(instance.error().code)) + ": " + instance.error().message;
    }
    EXPECT_EQ(*instance, ports::header_value(request.headers, kInstanceIdHeader));
    return "";
  }
  static void expect_text(const std::string& text, const std::string& want) {
    EXPECT_NE(text.find(want), std::string::npos) << text;
  }

  const std::string folder_ = testing::TempDir() + "cotenant-access-" + std::to_string(::getpid());
  const std::string path_ = folder_ + "/agents.json";
  fakes::SettableClock clock_{1'700'000'000'000};
  std::unique_ptr<AgentAccess> access_;
};

TEST_F(AgentAccessTest, ATokenLetsInAndThenTheKeyIsEnough) {
  const auto made = access_->create_token(3600);
  ASSERT_TRUE(made) << made.error().message;
  expect_text(admit(request(kInstance, kKey)), "needs a join token");
  EXPECT_EQ(admit(request(kInstance, kKey, made->secret)), "");
  ASSERT_TRUE(access_->revoke_token(made->token.id));
  EXPECT_EQ(admit(request(kInstance, kKey)), "") << "who has joined needs no token";
  expect_text(admit(request(kOtherInstance, kKey, made->secret)), "unknown or was revoked");
  open();
  EXPECT_EQ(admit(request(kInstance, kKey)), "") << "after a restart too";
  expect_text(admit(request(kOtherInstance, kKey, made->secret)), "unknown or was revoked");
}

TEST_F(AgentAccessTest, NobodyElseComesAsAnInstanceThatHasJoined) {
  const auto made = access_->create_token(3600);
  ASSERT_TRUE(made);
  ASSERT_EQ(admit(request(kInstance, kKey, made->secret)), "");
  expect_text(admit(request(kInstance, kOtherKey, made->secret)), "joined with another key");
  expect_text(admit(request(kInstance, kOtherKey), true), "joined with another key");
  ASSERT_TRUE(access_->forget_instance(kInstance));
  expect_text(admit(request(kInstance, kKey)), "needs a join token");
  EXPECT_EQ(admit(request(kInstance, kOtherKey, made->secret)), "");
}

TEST_F(AgentAccessTest, WhoIsTrustedNeedsNoTokenButHasAKey) {
  EXPECT_EQ(admit(request(kInstance, kKey), true), "");
  expect_text(admit(request(kInstance, kOtherKey), true), "joined with another key");
}

TEST_F(AgentAccessTest, Forgeries) {
  const auto made = access_->create_token(60);
  ASSERT_TRUE(made);
  struct Case {
    ports::HttpRequest request;
    std::string want;
  };
  std::string cut = made->secret;
  cut.pop_back();
  const Case cases[] = {
      {request("", kKey, made->secret), "instance id"},
      {request("A" + kInstance.substr(1), kKey, made->secret), "instance id"},
      {request(kInstance + "a", kKey, made->secret), "instance id"},
      {request(kInstance, "", made->secret), "32 to 256"},
      {request(kInstance, std::string(31, 'k'), made->secret), "32 to 256"},
      {request(kInstance, std::string(257, 'k'), made->secret), "32 to 256"},
      {request(kInstance, kKey, cut), "unknown or was revoked"},
      {request(kInstance, kKey, made->secret + "x"), "unknown or was revoked"},
      {request(kInstance, kKey, "cotenant-join." + made->token.id + "."), "unknown"},
      {request(kInstance, kKey, "cotenant-join."), "unknown or was revoked"},
      {request(kInstance, kKey, "x"), "unknown or was revoked"},
      {request(kInstance, kKey, made->token.hash), "unknown or was revoked"},
  };
  for (const Case& row : cases) {
    expect_text(admit(row.request), "AccessDeniedException: ");
    expect_text(admit(row.request), row.want);
  }
  clock_.advance(60'000);
  expect_text(admit(request(kInstance, kKey, made->secret)), "ExpiredTokenException: ");
}

TEST_F(AgentAccessTest, TheFileHoldsNoSecret) {
  const auto made = access_->create_token(3600);
  ASSERT_TRUE(made);
  ASSERT_EQ(admit(request(kInstance, kKey, made->secret)), "");
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  EXPECT_NE(text.str().find(made->token.id), std::string::npos);
  EXPECT_EQ(text.str().find(made->secret.substr(made->secret.rfind('.') + 1)), std::string::npos);
  EXPECT_EQ(text.str().find(kKey), std::string::npos);
}

TEST_F(AgentAccessTest, BoundsAndUnknownNames) {
  for (const std::int64_t life : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{59},
                                  std::int64_t{366} * 86400, INT64_MAX, INT64_MIN}) {
    const auto made = access_->create_token(life);
    ASSERT_FALSE(made) << life;
    expect_text(made.error().message, "expiresInSeconds");
  }
  EXPECT_FALSE(access_->revoke_token("00000000"));
  EXPECT_FALSE(access_->forget_instance(kInstance));
  ASSERT_TRUE(access_->create_token(60));
  ASSERT_TRUE(access_->create_token(3600));
  EXPECT_EQ(access_->tokens().size(), 2u);
  clock_.advance(61'000);
  ASSERT_TRUE(access_->create_token(3600));
  EXPECT_EQ(access_->tokens().size(), 2u) << "who has run out makes room";
}

TEST_F(AgentAccessTest, AFileThatCannotBeWrittenChangesNothing) {
  std::filesystem::remove_all(folder_);
  const auto made = access_->create_token(3600);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, base::ErrorCode::kIo);
  EXPECT_TRUE(access_->tokens().empty());
  EXPECT_NE(admit(request(kInstance, kKey), true), "");
  std::filesystem::create_directories(folder_);
  EXPECT_EQ(admit(request(kInstance, kOtherKey), true), "") << "the first key was not kept";
}

TEST_F(AgentAccessTest, DamagedFilesAreRefusedByName) {
  for (const char* text : {"", "{", "{}", R"({"format":2})", R"({"format":1,"tokens":[{}]})",
                           R"({"format":1,"instances":[{"id":"x"}]})"}) {
    { std::ofstream(path_) << text; }
    std::filesystem::permissions(path_, std::filesystem::perms::owner_read);
    const auto opened = AgentAccess::open(path_, clock_);
    ASSERT_FALSE(opened) << text;
    expect_text(opened.error().message, path_ + ": is damaged");
    std::filesystem::remove(path_);
  }
}

// ---- The guard in front of it.

TEST_F(AgentAccessTest, WhoMayCall) {
  struct Case {
    std::string name;
    bool must_sign;
    bool on_loopback;
    ports::HttpRequest request;
    std::string refused;  // the exception's name; empty: may
  };
  const auto call = [](std::string method, std::string target, std::string host,
                       ports::HttpPeer peer = {"127.0.0.1", false, std::nullopt}) {
    return ports::HttpRequest{
        std::move(method), std::move(target), {{"Host", std::move(host)}}, "", std::move(peer)};
  };
  ports::HttpRequest page = call("POST", "/", "127.0.0.1");
  page.headers.push_back({"Origin", "http://evil.example"});
  ports::HttpRequest page_on_socket = call("POST", "/", "localhost", {"unix", false, ::geteuid()});
  page_on_socket.headers.push_back({"Origin", ""});
  const ports::HttpPeer remote{"10.0.0.9", false, std::nullopt};
  const Case cases[] = {
      {"off: loopback", false, true, call("POST", "/", "127.0.0.1:8484"), ""},
      {"off: rebound", false, true, call("POST", "/", "evil.example"), "AccessDeniedException"},
      {"off: a page", false, true, page, "AccessDeniedException"},
      {"unsigned", true, true, call("POST", "/", "127.0.0.1"),
       "MissingAuthenticationTokenException"},
      {"health needs none", true, false, call("GET", "/healthz", "server", remote), ""},
      {"but only GET", true, false, call("POST", "/healthz", "server", remote),
       "MissingAuthenticationTokenException"},
      {"and exactly that", true, false, call("GET", "/healthz?", "server", remote),
       "MissingAuthenticationTokenException"},
      {"metrics from here", true, false, call("GET", "/metrics", "server"), ""},
      {"metrics from elsewhere", true, false, call("GET", "/metrics", "server", remote),
       "MissingAuthenticationTokenException"},
      {"elsewhere the Host may be any, once signed", true, false,
       call("POST", "/", "server", remote), "MissingAuthenticationTokenException"},
      {"the socket, us", true, true, call("POST", "/", "localhost", {"unix", false, ::geteuid()}),
       ""},
      {"the socket, root", true, true, call("POST", "/", "localhost", {"unix", false, 0}), ""},
      {"the socket, another user", true, true,
       call("POST", "/", "localhost", {"unix", false, ::geteuid() + 12345}),
       "AccessDeniedException"},
      {"the socket, a page", true, true, page_on_socket, "AccessDeniedException"},
  };
  for (const Case& row : cases) {
    GuardOptions options;
    options.must_sign = row.must_sign;
    options.is_on_loopback = row.on_loopback;
    const RequestGuard guard(options, clock_, access_.get());
    const auto status = guard.check_call(row.request);
    EXPECT_EQ(status ? "" : base::error_name(status.error().code), row.refused)
        << row.name << (status ? "" : ": " + status.error().message);
  }
}

TEST_F(AgentAccessTest, SignedCallsAreCheckedWithTheKeyTheyName) {
  GuardOptions options;
  options.must_sign = true;
  options.secrets = {{"AKCTONE", "secret-one"}, {"AKCTTWO", "secret-two"}};
  const RequestGuard guard(options, clock_, access_.get());
  struct Case {
    net::AwsCredentials credentials;
    std::string refused;
  };
  const Case cases[] = {
      {{"AKCTONE", "secret-one"}, ""},
      {{"AKCTTWO", "secret-two"}, ""},
      {{"AKCTONE", "secret-two"}, "InvalidSignatureException"},
      {{"AKCTTHREE", "secret-one"}, "UnrecognizedClientException"},
  };
  for (const Case& row : cases) {
    ports::HttpRequest signed_request{"POST", "/", {{"Host", "127.0.0.1"}}, "{}", {}};
    net::sign_sigv4(signed_request, row.credentials, "us-east-1", "ecs", clock_.now_ms() / 1000);
    const auto status = guard.check_call(signed_request);
    EXPECT_EQ(status ? "" : base::error_name(status.error().code), row.refused);
  }
}

}  // namespace
}  // namespace cotenant::server::test
