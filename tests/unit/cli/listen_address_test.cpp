#include "cli/listen_address.h"

#include <gtest/gtest.h>

#include <string>

#include "server/request_origin.h"

namespace cotenant::cli {
namespace {

TEST(ListenAddressTest, Parts) {
  struct Row {
    std::string text;
    std::string host;
    int port;
    std::string url;
  };
  const Row rows[] = {
      {"127.0.0.1:8484", "127.0.0.1", 8484, "http://127.0.0.1:8484"},
      {"localhost:0", "localhost", 0, "http://localhost:0"},
      {"[::1]:8484", "::1", 8484, "http://[::1]:8484"},
      {"127.0.0.1:65535", "127.0.0.1", 65535, "http://127.0.0.1:65535"},
  };
  for (const Row& row : rows) {
    const auto address = parse_listen_address(row.text);
    ASSERT_TRUE(address) << row.text;
    EXPECT_EQ(address->host, row.host);
    EXPECT_EQ(address->port, row.port);
    EXPECT_EQ(address->url(), row.url);
    // What the help promises must pass the server's own check.
    EXPECT_TRUE(server::is_loopback_host(address->host)) << row.text;
  }
}

TEST(ListenAddressTest, Refused) {
  for (const char* text :
       {"", ":", "8484", ":8484", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1",
        "127.0.0.1:+1", "127.0.0.1: 1", "127.0.0.1:1 ", "127.0.0.1:65536", "127.0.0.1:99999999999",
        "[]:1", "[::1]", "http://127.0.0.1:8484/"}) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, base::ErrorCode::kInvalidParameter);
    EXPECT_NE(address.error().message.find("--listen: '" + std::string(text) + "'"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace cotenant::cli
