#include "adapters/docker_errors.h"

#include <gtest/gtest.h>

#include <string>

namespace cotenant::adapters {
namespace {

using base::ErrorCode;

TEST(DockerErrors, StatusAndTextGiveTheCode) {
  struct Case {
    int status;
    const char* body;
    ErrorCode want;
    const char* text;
  };
  for (const Case& c : {
           Case{404, R"({"message":"No such container: web"})", ErrorCode::kNotFound,
                "do: No such container: web"},
           Case{404, R"({"message":"No such image: nope:1"})", ErrorCode::kNotFound,
                "do: No such image: nope:1"},
           Case{404,
                R"({"cause":"no such container","message":"no container with name or ID \"x\" )"
                R"(found: no such container","response":404})",
                ErrorCode::kNotFound,
                "do: no container with name or ID \"x\" found: no such container"},
           Case{404, R"({"message":"network net1 not found"})", ErrorCode::kClient,
                "do: network net1 not found"},
           Case{409,
                R"({"message":"Conflict. The container name \"/web\" is already in use by )"
                R"(container \"73be\"."})",
                ErrorCode::kConflict,
                "do: Conflict. The container name \"/web\" is already in use by container "
                "\"73be\"."},
           Case{500,
                R"({"message":"creating container storage: the container name \"web\" is )"
                R"(already in use by 73be"})",
                ErrorCode::kConflict,
                "do: creating container storage: the container name \"web\" is already in use by "
                "73be"},
           Case{409, R"({"message":"You cannot remove a running container 6a2f."})",
                ErrorCode::kClient, "do: You cannot remove a running container 6a2f."},
           Case{400, R"({"message":"OCI runtime create failed"})", ErrorCode::kClient,
                "do: OCI runtime create failed"},
           Case{500, R"({"message":"could not select device driver \"cdi\""})", ErrorCode::kClient,
                "do: could not select device driver \"cdi\""},
           Case{503, R"({"message":"shutting down"})", ErrorCode::kUnavailable,
                "do: shutting down"},
           Case{502, "<html>Bad gateway</html>", ErrorCode::kProtocol,
                "do: HTTP status 502 without the engine's message"},
           Case{404, R"({"error":"x"})", ErrorCode::kProtocol,
                "do: HTTP status 404 without the engine's message"},
           Case{500, "", ErrorCode::kProtocol, "do: HTTP status 500 without the engine's message"},
       }) {
    const base::Error got = docker_error("do", {c.status, {}, c.body});
    EXPECT_EQ(base::error_name(got.code), base::error_name(c.want)) << c.status << c.body;
    EXPECT_EQ(got.code, c.want) << c.status << c.body;
    EXPECT_EQ(got.message, c.text);
  }
}

TEST(DockerErrors, LongTextsAreCut) {
  const std::string body = R"({"message":")" + std::string(100'000, 'x') + R"("})";
  EXPECT_LT(docker_error("do", {400, {}, body}).message.size(), 2100U);
}

TEST(DockerErrors, AMissingImageIsNoMissingContainer) {
  EXPECT_TRUE(
      is_no_such_container(docker_error("do", {404, {}, R"({"message":"No such container: a"})"})));
  EXPECT_FALSE(
      is_no_such_container(docker_error("do", {404, {}, R"({"message":"No such image: a"})"})));
  EXPECT_FALSE(
      is_no_such_container(docker_error("do", {500, {}, R"({"message":"No such container: a"})"})));
}

}  // namespace
}  // namespace cotenant::adapters
