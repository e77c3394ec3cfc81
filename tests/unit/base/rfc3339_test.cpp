#include <gtest/gtest.h>

#include "base/rfc3339.h"

namespace cotenant::base {
namespace {

TEST(Rfc3339, ReadsTimes) {
  struct Case {
    const char* text;
    TimeMs want_ms;
  };
  for (const Case& c : {
           Case{"1970-01-01T00:00:00Z", 0},
           Case{"1970-01-01T00:00:00.001Z", 1},
           Case{"2026-12-01T11:51:15.495363475Z", 1796125875495},  // `date -d ... +%s%3N`
           Case{"2026-12-01T11:51:15.4Z", 1796125875400},
           Case{"2026-12-01T11:51:15.49Z", 1796125875490},
           Case{"2026-12-01T11:51:15.4999999Z", 1796125875499},
           Case{"2026-12-01T11:51:15Z", 1796125875000},
           Case{"2026-12-01T12:51:15+01:00", 1796125875000},
           Case{"2026-12-01T06:21:15.495363475-05:30", 1796125875495},
           Case{"2024-02-29T00:00:00Z", 1709164800000},
           Case{"2000-12-31t23:59:60z", 978307200000},
           Case{"0001-01-01T00:00:00Z", 0},
       }) {
    const auto got = parse_rfc3339(c.text);
    ASSERT_TRUE(got) << c.text << ": " << got.error().message;
    EXPECT_EQ(*got, c.want_ms) << c.text;
  }
}

TEST(Rfc3339, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "now", "2026-12-01", "2026-12-01 11:51:15Z", "2026-12-01T11:51:15",
        "2026-12-01T11:51:15.Z", "2026-12-01T11:51:15.1234567890Z", "2026-13-01T11:51:15Z",
        "2026-02-29T00:00:00Z", "2026-12-01T24:00:00Z", "2026-12-01T11:60:00Z",
        "2026-12-01T11:51:61Z", "2026-12-01T11:51:15+1:00", "2026-12-01T11:51:15+24:00",
        "2026-12-01T11:51:15Zx", "-026-12-01T11:51:15Z", "20x6-12-01T11:51:15Z"}) {
    const auto got = parse_rfc3339(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, base::ErrorCode::kProtocol) << text;
  }
}

}  // namespace
}  // namespace cotenant::base
