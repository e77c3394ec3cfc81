#include "server/paging.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace cotenant::server {
namespace {

const std::map<std::string, int> kMap = {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}};

bool any(const std::string&, int) {
  return true;
}
bool odd(const std::string&, int value) {
  return value % 2 == 1;
}

TEST(PagingTest, Pages) {
  struct Row {
    std::string name;
    std::size_t max;
    std::string after;
    bool only_odd;
    std::vector<std::string> want;
    bool more;
  };
  const Row rows[] = {
      {"all on one page", 5, "", false, {"a", "b", "c", "d", "e"}, false},
      {"exactly full is the last page", 3, "b", false, {"c", "d", "e"}, false},
      {"one is left", 4, "", false, {"a", "b", "c", "d"}, true},
      {"after a key that has gone", 2, "bb", false, {"c", "d"}, true},
      {"after the last", 2, "e", false, {}, false},
      {"filtered", 2, "", true, {"a", "c"}, true},
      {"what is left is filtered out", 3, "", true, {"a", "c", "e"}, false},
      {"filtered, after", 2, "a", true, {"c", "e"}, false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const codec::Page page{row.max, row.after};
    const KeyPage got = row.only_odd ? page_of(kMap, page, odd) : page_of(kMap, page, any);
    EXPECT_EQ(got.keys, row.want);
    EXPECT_EQ(!got.next_token.empty(), row.more);
  }
}

TEST(PagingTest, TokensLeadThroughEverythingOnce) {
  for (std::size_t max = 1; max <= 6; ++max) {
    std::vector<std::string> seen;
    codec::Json body = codec::Json::object({{"maxResults", static_cast<int>(max)}});
    for (int calls = 0; calls < 10; ++calls) {
      const auto page = codec::decode_page(body);
      ASSERT_TRUE(page);
      const KeyPage got = page_of(kMap, *page, any);
      seen.insert(seen.end(), got.keys.begin(), got.keys.end());
      if (got.next_token.empty()) break;
      body.set("nextToken", got.next_token);
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", "c", "d", "e"})) << max;
  }
}

}  // namespace
}  // namespace cotenant::server
