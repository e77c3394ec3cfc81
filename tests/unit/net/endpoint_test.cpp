#include "net/endpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cotenant::net {
namespace {

TEST(EndpointTest, Accepts) {
  struct Case {
    std::string text;
    Endpoint::Kind kind;
    std::string host;
    std::uint16_t port;
    std::string path;
    std::string host_header;
  };
  const std::vector<Case> cases = {
      {"http://127.0.0.1:8484", Endpoint::Kind::kTcp, "127.0.0.1", 8484, "", "127.0.0.1:8484"},
      {"http://127.0.0.1:8484/", Endpoint::Kind::kTcp, "127.0.0.1", 8484, "", "127.0.0.1:8484"},
      {"http://gpu-1.example", Endpoint::Kind::kTcp, "gpu-1.example", 80, "", "gpu-1.example"},
      {"http://[::1]:65535", Endpoint::Kind::kTcp, "::1", 65535, "", "[::1]:65535"},
      {"http://[fe80::1]", Endpoint::Kind::kTcp, "fe80::1", 80, "", "[fe80::1]"},
      {"https://gpu-1.example", Endpoint::Kind::kTcp, "gpu-1.example", 443, "", "gpu-1.example"},
      {"https://h:80", Endpoint::Kind::kTcp, "h", 80, "", "h:80"},
      {"https://h:8484/", Endpoint::Kind::kTcp, "h", 8484, "", "h:8484"},
      {"unix:///run/docker.sock", Endpoint::Kind::kUnix, "", 0, "/run/docker.sock", "localhost"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto endpoint = parse_endpoint(c.text);
    ASSERT_TRUE(endpoint.has_value()) << endpoint.error().message;
    EXPECT_EQ(endpoint->kind, c.kind);
    EXPECT_EQ(endpoint->host, c.host);
    EXPECT_EQ(endpoint->port, c.port);
    EXPECT_EQ(endpoint->path, c.path);
    EXPECT_EQ(endpoint->text, c.text);
    EXPECT_EQ(endpoint->is_tls, c.text.rfind("https", 0) == 0);
    EXPECT_EQ(endpoint->host_header(), c.host_header);
  }
}

TEST(EndpointTest, RefusesAndSaysWhatWouldBeRight) {
  struct Case {
    std::string text;
    std::string want;
  };
  const std::vector<Case> cases = {
      {"", "want http://host:port, https://host:port or unix:///path"},
      {"127.0.0.1:8484", "want http://host:port, https://host:port or unix:///path"},
      {"https://", "the host is missing"},
      {"tcp://127.0.0.1:2375", "want http://host:port, https://host:port or unix:///path"},
      {"http://", "the host is missing"},
      {"http://:8484", "the host is missing"},
      {"http://host:", "port '': want 1 to 65535"},
      {"http://host:0", "port '0': want 1 to 65535"},
      {"http://host:65536", "port '65536': want 1 to 65535"},
      {"http://host:80x", "port '80x': want 1 to 65535"},
      {"http://host:-1", "port '-1': want 1 to 65535"},
      {"http://host/path", "want only host and port"},
      {"http://host?x", "want only host and port"},
      {"http://me:secret@host", "a user name or password"},
      {"http://::1:80", "must stand in brackets"},
      {"http://[::1", "is not closed"},
      {"http://[::1]80", "want ':port' or nothing after ']'"},
      {"http://[host]:80", "an IPv6 address must stand"},
      {"http://ho st", "not a name or an address"},
      {"http://ho\r\nst", "not a name or an address"},
      {"http://" + std::string(254, 'a'), "not a name or an address"},
      {"unix://", "needs an absolute path"},
      {"unix:///", "needs an absolute path"},
      {"unix://run/docker.sock", "needs an absolute path"},
      {"unix:///" + std::string(107, 'a'), "at most 107 bytes, this has 108"},
      {"unix:///a" + std::string(1, '\0') + "b", "zero byte"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto endpoint = parse_endpoint(c.text);
    ASSERT_FALSE(endpoint.has_value());
    EXPECT_EQ(endpoint.error().code, base::ErrorCode::kInvalidParameter);
    EXPECT_NE(endpoint.error().message.find(c.want), std::string::npos) << endpoint.error().message;
  }
}

}  // namespace
}  // namespace cotenant::net
