#include "server/request_origin.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cotenant::server {
namespace {

TEST(RequestOriginTest, LoopbackHosts) {
  struct Row {
    std::string host;
    bool loopback;
  };
  const Row rows[] = {
      {"localhost", true},
      {"localhost:8484", true},
      {"LocalHost:1", true},
      {"127.0.0.1", true},
      {"127.0.0.1:1", true},
      {"127.255.255.255:65535", true},
      {"[::1]", true},
      {"[::1]:8484", true},
      {"[0:0:0:0:0:0:0:1]:8484", true},
      {"::1", true},  // as --listen hands it on
      {"", false},
      {":8484", false},
      {"localhost:", false},
      {"localhost:x", false},
      {"localhost:123456", false},
      {"localhost.", false},
      {"localhost.evil.example", false},
      {"localhosted", false},
      {"evil.example", false},
      {"evil.example:8484", false},
      {"127.0.0.1.evil.example", false},
      {"127.1", false},
      {"127.0.0.01", false},
      {"0177.0.0.1", false},
      {"2130706433", false},
      {"128.0.0.1", false},
      {"0.0.0.0", false},
      {"10.0.0.1:8484", false},
      {"[::2]", false},
      {"[::]", false},
      {"::2", false},
      {"[::1", false},
      {"[::1]x", false},
      {"[::1]:", false},
      {"::1:8484", false},
      {"127.0.0.1 ", false},
      {" 127.0.0.1", false},
      {"127.0.0.1/x", false},
      {"user@127.0.0.1", false},
      {std::string("127.0.0.1\0.evil", 15), false},
      {std::string("localhost\0", 10), false},
  };
  for (const Row& row : rows) EXPECT_EQ(is_loopback_host(row.host), row.loopback) << row.host;
}

TEST(RequestOriginTest, RequestsByTheirHeaders) {
  struct Row {
    std::string name;
    std::vector<ports::HttpHeader> headers;
    std::string refused_for;  // empty: allowed
  };
  const Row rows[] = {
      {"an SDK", {{"Host", "127.0.0.1:8484"}}, ""},
      {"names compare without case", {{"hOST", "localhost"}}, ""},
      {"no Host", {}, "Host: ''"},
      {"an empty Host", {{"Host", ""}}, "Host: ''"},
      {"rebound DNS", {{"Host", "evil.example"}}, "Host: 'evil.example'"},
      {"what is not printable is not repeated", {{"Host", "e\x01\xff"}}, "Host: 'e?\?'"},
      {"a page", {{"Host", "127.0.0.1"}, {"Origin", "http://evil.example"}}, "Origin: "},
      {"a page of our own address",
       {{"Host", "127.0.0.1"}, {"Origin", "http://127.0.0.1"}},
       "Origin: "},
      {"a sandboxed page", {{"Host", "127.0.0.1"}, {"ORIGIN", "null"}}, "Origin: "},
      {"an Origin without value", {{"Host", "127.0.0.1"}, {"Origin", ""}}, "Origin: "},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    ports::HttpRequest request;
    request.headers = row.headers;
    const base::Status status = check_request_origin(request);
    EXPECT_EQ(status.has_value(), row.refused_for.empty());
    if (status) continue;
    EXPECT_EQ(status.error().code, base::ErrorCode::kAccessDenied);
    EXPECT_NE(status.error().message.find(row.refused_for), std::string::npos)
        << status.error().message;
  }
}

}  // namespace
}  // namespace cotenant::server
