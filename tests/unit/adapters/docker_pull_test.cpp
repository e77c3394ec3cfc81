#include "adapters/docker_pull.h"

#include <gtest/gtest.h>

#include "adapters/docker_images.h"
#include "scripted_client.h"

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

// What Docker 20.10 sends for a pull of one layer that it has and one that it fetches.
constexpr const char* kPullLines =
    R"({"status":"Pulling from team/model","id":"v1"})"
    "\r\n"
    R"({"status":"Already exists","progressDetail":{},"id":"aaa"})"
    "\r\n"
    R"({"status":"Pulling fs layer","progressDetail":{},"id":"bbb"})"
    "\r\n"
    R"({"status":"Downloading","progressDetail":{"current":400,"total":1000},"id":"bbb"})"
    "\r\n"
    R"({"status":"Download complete","progressDetail":{},"id":"bbb"})"
    "\r\n"
    R"({"status":"Extracting","progressDetail":{"current":1000,"total":1000},"id":"bbb"})"
    "\r\n"
    R"({"status":"Pull complete","progressDetail":{},"id":"bbb"})"
    "\r\n"
    R"({"status":"Digest: sha256:dd"})"
    "\r\n"
    R"({"status":"Status: Downloaded newer image for team/model:v1"})"
    "\r\n";

TEST(DockerPull, SumsUpLayersInPiecesOfAnySize) {
  const std::string text = kPullLines;
  for (std::size_t size = 1; size <= text.size(); size += 7) {
    DockerPull pull;
    std::int64_t most_bytes_total = 0;
    bool seen_partly = false;
    for (std::size_t at = 0; at < text.size(); at += size) {
      pull.feed(std::string_view(text).substr(at, size));
      most_bytes_total = std::max(most_bytes_total, pull.progress().bytes_total);
      seen_partly = seen_partly || pull.progress().bytes_done == 400;
    }
    EXPECT_TRUE(pull.complete());
    EXPECT_FALSE(pull.error());
    EXPECT_EQ(pull.progress().layers, 1);
    EXPECT_EQ(pull.progress().layers_done, 1);
    EXPECT_EQ(pull.progress().bytes_done, 1000);
    EXPECT_EQ(most_bytes_total, 1000);
    EXPECT_TRUE(seen_partly || size > 1);
  }
}

TEST(DockerPull, SurvivesWhatIsNoProgress) {
  DockerPull pull;
  pull.feed("not json\n[]\n{\"status\":7}\n" + std::string(DockerPull::kLineBytesMax + 1, 'x') +
            "\n");
  pull.feed(R"({"status":"Downloading","id":"a","progressDetail":{"current":-5,"total":-7}})"
            "\n");
  EXPECT_EQ(pull.progress().bytes_total, 0);
  EXPECT_FALSE(pull.complete());
  pull.feed(R"({"errorDetail":{"message":"boom"}})"
            "\n");
  EXPECT_EQ(pull.error(), "boom");
}

TEST(DockerPull, KnowsWhichRefusalsWillNotChange) {
  struct Row {
    const char* text;
    ErrorCode want;
  };
  for (const Row& row : {
           Row{"pull access denied for x, repository does not exist or may require 'docker login'",
               ErrorCode::kNotFound},
           Row{"manifest for reg:5000/x:1 not found: manifest unknown: manifest unknown",
               ErrorCode::kNotFound},
           Row{"Get \"http://reg:5000/v2/x/manifests/1\": no basic auth credentials",
               ErrorCode::kClient},
           Row{"unauthorized: authentication required", ErrorCode::kClient},
           Row{"invalid reference format", ErrorCode::kClient},
           Row{"no matching manifest for linux/amd64 in the manifest list entries",
               ErrorCode::kClient},
           Row{"Get \"https://reg/v2/\": dial tcp 10.0.0.1:443: connect: connection refused",
               ErrorCode::kIo},
           Row{"toomanyrequests: You have reached your pull rate limit", ErrorCode::kIo},
           Row{"received unexpected HTTP status: 503 Service Unavailable", ErrorCode::kIo},
           Row{"unexpected EOF", ErrorCode::kIo},
           Row{"Get \"https://reg/v2/\": dial tcp: lookup reg: no such host", ErrorCode::kIo},
       }) {
    EXPECT_EQ(classify_pull_error(row.text), row.want) << row.text;
  }
}

TEST(DockerPull, NeverAsksForEveryTag) {
  struct Row {
    const char* image;
    const char* name;
    const char* tag;
  };
  for (const Row& row :
       {Row{"busybox", "busybox", "latest"}, Row{"busybox:1", "busybox", "1"},
        Row{"reg:5000/a/b", "reg:5000/a/b", "latest"}, Row{"reg:5000/a/b:v2", "reg:5000/a/b", "v2"},
        Row{"reg:5000/a@sha256:00", "reg:5000/a@sha256:00", ""}}) {
    const PullTarget got = pull_target(row.image);
    EXPECT_EQ(got.name, row.name) << row.image;
    EXPECT_EQ(got.tag, row.tag) << row.image;
  }
}

class DockerImagesTest : public testing::Test {
 protected:
  DockerImagesTest() {
    client_->on("GET /version", 200,
                R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12"})");
  }
  base::Status pull(const ports::PullRequest& request) { return images_.pull(request, {}, {}); }

  std::shared_ptr<ScriptedClient> client_ = std::make_shared<ScriptedClient>();
  DockerImages images_{std::make_shared<DockerClient>(client_)};
};

TEST_F(DockerImagesTest, PullsAndShowsCredentials) {
  client_->pieces = {kPullLines};
  ports::PullRequest request{"reg:5000/team/model:v1", {}};
  int changes = 0;
  EXPECT_TRUE(images_.pull(request, [&](const ports::PullProgress&) { ++changes; }, {}));
  EXPECT_GT(changes, 0);
  EXPECT_EQ(client_->calls.back(),
            "POST /v1.41/images/create?fromImage=reg%3A5000%2Fteam%2Fmodel&tag=v1");
  EXPECT_FALSE(ports::has_header(client_->requests.back().headers, "X-Registry-Auth"));

  request.credentials = ports::RegistryCredentials{"reg:5000", "me", "p\xc3\xa4ss", ""};
  EXPECT_TRUE(pull(request));
  // {"username":"me","password":"päss","serveraddress":"reg:5000"} in base64url.
  EXPECT_EQ(ports::header_value(client_->requests.back().headers, "X-Registry-Auth"),
            "eyJ1c2VybmFtZSI6Im1lIiwicGFzc3dvcmQiOiJww6RzcyIsInNlcnZlcmFkZHJlc3MiOiJyZWc6NTAwMCJ9");
  request.credentials->identity_token = "tok";
  EXPECT_TRUE(pull(request));
  EXPECT_EQ(ports::header_value(client_->requests.back().headers, "X-Registry-Auth"),
            "eyJpZGVudGl0eXRva2VuIjoidG9rIiwic2VydmVyYWRkcmVzcyI6InJlZzo1MDAwIn0=");
}

TEST_F(DockerImagesTest, FailuresHaveTheirCodes) {
  const std::string call = "POST /v1.41/images/create?fromImage=x&tag=latest";
  struct Row {
    const char* name;
    std::vector<std::string> pieces;
    int status;  // 0: the pieces are the answer
    const char* body;
    ErrorCode want;
    const char* message;
  };
  const std::vector<Row> rows = {
      {"refused",
       {},
       404,
       R"({"message":"pull access denied for x"})",
       ErrorCode::kNotFound,
       "pull x: pull access denied for x"},
      {"registry away",
       {},
       500,
       R"({"message":"dial tcp: connection refused"})",
       ErrorCode::kIo,
       "pull x: dial tcp: connection refused"},
      {"fails in the middle",
       {"{\"status\":\"Pulling\"}\n{\"errorDetail\":{\"message\":\"unexpected EOF\"},"
        "\"error\":\"unexpected EOF\"}\n"},
       0,
       "",
       ErrorCode::kIo,
       "pull x: unexpected EOF"},
      {"breaks off",
       {"{\"status\":\"Pulling fs layer\",\"id\":\"a\"}\n"},
       0,
       "",
       ErrorCode::kUnavailable,
       "pull x: the engine broke off in the middle"},
      {"no engine",
       {},
       502,
       "<html>",
       ErrorCode::kProtocol,
       "pull x: HTTP status 502 without the engine's message"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    client_ = std::make_shared<ScriptedClient>();
    client_->on("GET /version", 200,
                R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12"})");
    if (row.status != 0) client_->on(call, row.status, row.body);
    client_->pieces = row.pieces;
    DockerImages images(std::make_shared<DockerClient>(client_));
    const base::Status got = images.pull({"x", {}}, {}, {});
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, row.want);
    EXPECT_EQ(got.error().message, row.message);
  }
}

TEST_F(DockerImagesTest, SilenceEndsAPull) {
  client_->hang = true;
  ports::PullRequest request{"x", {}};
  request.inactivity_timeout = std::chrono::milliseconds(20);
  const base::Status got = pull(request);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kTimeout);

  // And so does whoever has no use for it any more.
  std::stop_source stop;
  stop.request_stop();
  const base::Status stopped = images_.pull({"x", {}}, {}, stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kUnavailable);
}

TEST_F(DockerImagesTest, RemovesWithoutForce) {
  const std::string call = "DELETE /v1.41/images/reg%3A5000/a%3A1";
  client_->on(call, 200, "[]")
      .on(call, 404, R"({"message":"No such image: a:1"})")
      .on(call, 409, R"({"message":"conflict: container 0 is using it"})");
  EXPECT_TRUE(images_.remove("reg:5000/a:1"));
  EXPECT_TRUE(images_.remove("reg:5000/a:1"));
  const base::Status used = images_.remove("reg:5000/a:1");
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code, ErrorCode::kConflict);
}

TEST_F(DockerImagesTest, KnowsWhatIsInUse) {
  client_->on("GET /v1.41/containers/json?all=1", 200,
              R"([{"ImageID":"sha256:a"},{"ImageID":"b"},{"Id":"odd"}])");
  const auto used = images_.in_use();
  ASSERT_TRUE(used);
  EXPECT_EQ(*used, (std::set<std::string>{"sha256:a", "sha256:b"}));
}

}  // namespace
}  // namespace cotenant::adapters
