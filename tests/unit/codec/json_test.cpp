#include "codec/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/prng.h"
#include "codec/utf8.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(JsonTest, ParsesAndWritesCompactly) {
  struct Row {
    std::string_view in;
    std::string_view want;
  };
  const Row rows[] = {
      {"null", "null"},
      {" true ", "true"},
      {"false\n", "false"},
      {"0", "0"},
      {"-0", "0"},
      {"-17", "-17"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"1.0", "1.0"},
      {"1e3", "1000.0"},
      {"-0.0", "-0.0"},
      {"0.1", "0.1"},
      {"5e-324", "5e-324"},
      {"1e-400", "0.0"},
      {"1e300", "1e+300"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"123456789012345678901234567890.0", "1.2345678901234568e+29"},
      // The two neighbours that a fast, inexact reader mixes up.
      {"0.30000000000000004", "0.30000000000000004"},
      {"9007199254740993.0", "9007199254740992.0"},
      {R"("")", R"("")"},
      {R"("a\/b")", R"("a/b")"},
      {R"("\u0041\u00e9\ud83d\ude00")", "\"A\xC3\xA9\xF0\x9F\x98\x80\""},
      {R"("\u0000\u001f\b\f\n\r\t\"\\")", R"("\u0000\u001f\b\f\n\r\t\"\\")"},
      {"[]", "[]"},
      {"{}", "{}"},
      {"[ [ ] , { } ]", "[[],{}]"},
      {R"({ "b" : 1, "a" : [ 1.5, null ] })", R"({"b":1,"a":[1.5,null]})"},
      {R"({"":{"":0}})", R"({"":{"":0}})"},
  };
  for (const Row& row : rows) {
    const auto got = Json::parse(row.in);
    ASSERT_TRUE(got) << row.in << ": " << got.error().message;
    EXPECT_EQ(got->dump(), row.want) << row.in;
    const auto again = Json::parse(got->dump());
    ASSERT_TRUE(again) << row.in;
    EXPECT_EQ(*again, *got) << row.in;
  }
}

TEST(JsonTest, RefusesWithBytePositionAndReason) {
  const std::string padding(10000, ' ');
  const std::string digits(200000, '7');
  struct Row {
    std::string in;
    std::string want;
  };
  const Row rows[] = {
      {"", "byte 0: the document ends too early"},
      {"   ", "byte 3: the document ends too early"},
      {"{\"a\":1", "byte 6: the document ends too early"},
      {"\"abc", "byte 4: the document ends too early"},
      {"-", "byte 1: the document ends too early"},
      {"{} x", "byte 3: text after the end of the document"},
      {"{}{}", "byte 2: text after the end of the document"},
      {"1 2", "byte 2: text after the end of the document"},
      {"01", "byte 1: text after the end of the document"},
      {"[1,]", "byte 3: not valid JSON"},
      {"[1 2]", "byte 3: not valid JSON"},
      {"{\"a\" 1}", "byte 5: not valid JSON"},
      {"{a:1}", "byte 1: not valid JSON"},
      {"{'a':1}", "byte 1: not valid JSON"},
      {"[1,}", "byte 3: not valid JSON"},
      {"nul", "byte 3: the document ends too early"},
      {"nulL", "byte 3: not valid JSON"},
      {"NaN", "byte 0: not valid JSON"},
      {"Infinity", "byte 0: not valid JSON"},
      {"+1", "byte 0: not valid JSON"},
      {".5", "byte 0: not valid JSON"},
      {"1.", "byte 2: not valid JSON"},
      {"[1.]", "byte 3: not valid JSON"},
      {"/*a*/1", "byte 0: not valid JSON"},
      {padding + "[1,]", "byte 10003: not valid JSON"},
      {"[\"a\tb\"]", "byte 3: not valid JSON"},
      {"\"\\x\"", "byte 2: not valid JSON"},
      {"\"\\ud800\"", "byte 7: not valid JSON"},
      {"\"\\udc00\"", "surrogate"},
      {"\"\xFF\"", "byte 1: not valid JSON (or a string that is not valid UTF-8)"},
      {"\"a\xC0\x80\"", "byte 2: not valid JSON (or a string that is not valid UTF-8)"},
      {"\"\xED\xA0\x80\"", "not valid UTF-8"},
      {"\"\xF4\x90\x80\x80\"", "not valid UTF-8"},
      {"\"\xE2\x82\"", "not valid UTF-8"},
      {"{\"\xFF\":1}", "byte 2: not valid JSON (or a string that is not valid UTF-8)"},
      {std::string("\0", 1), "byte 0: not valid JSON"},
      {"{\"a\":1,\"b\":2,\"a\":3}", "byte 15: duplicate key \"a\""},
      {"{\"a\":1,\"\\u0061\":3}", "duplicate key \"a\""},
      {"[{\"x\":{\"k\":null,\"k\":null}}]", "duplicate key \"k\""},
      {"{\"" + std::string(500, 'k') + "\":1,\"" + std::string(500, 'k') + "\":1}",
       "duplicate key \"" + std::string(64, 'k') + "...\""},
      {"[1e999]", "the number 1e999 is too large"},
      {"-1e999", "the number -1e999 is too large"},
      {"1e99999999999", "too large"},
      {digits + ".0", "too large"},
      {"9223372036854775808",
       "the integer 9223372036854775808 does not fit 64 bits; the largest is 9223372036854775807"},
      {"-9223372036854775809", "does not fit 64 bits"},
      {"{\"a\":18446744073709551616}", "the integer 18446744073709551616 does not fit 64 bits"},
      {digits, "the integer " + std::string(64, '7') + "... does not fit 64 bits"},
      {nested(base::limits::kJsonDepth + 1),
       "byte 32: arrays and objects may be nested at most 32 deep"},
      {std::string(1024 * 1024, '['), "nested at most 32 deep"},
  };
  for (const Row& row : rows) {
    const std::string shown = row.in.substr(0, 60);
    const auto got = Json::parse(row.in);
    ASSERT_FALSE(got) << shown << " gave " << got->dump().substr(0, 60);
    EXPECT_EQ(got.error().code, ErrorCode::kSerialization) << shown;
    EXPECT_NE(got.error().message.find(row.want), std::string::npos)
        << shown << ": " << got.error().message;
    EXPECT_EQ(got.error().message.rfind("JSON, byte ", 0), 0U) << got.error().message;
    EXPECT_LE(got.error().message.size(), 300U) << shown;
  }
}

TEST(JsonTest, NestingUpToTheLimitIsTaken) {
  const auto got = Json::parse(nested(base::limits::kJsonDepth));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->dump(), nested(base::limits::kJsonDepth));
}

TEST(JsonTest, NumbersKeepTheirKind) {
  struct Row {
    std::string_view in;
    bool want_integer;
  };
  const Row rows[] = {{"1", true}, {"1.0", false}, {"1e3", false}, {"1E3", false}, {"-2", true}};
  for (const Row& row : rows) {
    const auto got = Json::parse(row.in);
    ASSERT_TRUE(got) << row.in;
    EXPECT_EQ(got->is_integer(), row.want_integer) << row.in;
    EXPECT_EQ(got->is_double(), !row.want_integer) << row.in;
    EXPECT_TRUE(got->is_number()) << row.in;
  }
  EXPECT_NE(*Json::parse("1"), *Json::parse("1.0"));
}

TEST(JsonTest, DuplicatesInALargeObjectAreFoundToo) {
  std::string text = "{";
  for (int i = 0; i < 20000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  const auto good = Json::parse(text + "\"last\":0}");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->as_object().size(), 20001U);
  const auto bad = Json::parse(text + "\"k7\":0}");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("duplicate key \"k7\""), std::string::npos)
      << bad.error().message;
}

TEST(JsonTest, WriterNeverWritesWhatTheParserRefuses) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Json(infinity).dump(), "null");
  EXPECT_EQ(Json(-infinity).dump(), "null");
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(std::string("a\xFF\x62\xE2\x82")).dump(),
            "\"a\xEF\xBF\xBD\x62\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(Utf8Test, SequencesAsRfc3629HasThem) {
  struct Row {
    std::string_view text;
    std::size_t want;
  };
  const Row rows[] = {
      {"a", 1},
      {"\x7F", 1},
      {"\x80", 0},
      {"\xC1\xBF", 0},  // overlong
      {"\xC2\x80", 2},
      {"\xDF\xBF", 2},
      {"\xDF\xC0", 0},
      {"\xE0\x9F\xBF", 0},  // overlong
      {"\xE0\xA0\x80", 3},
      {"\xED\x9F\xBF", 3},
      {"\xED\xA0\x80", 0},  // a surrogate
      {"\xEE\x80\x80", 3},
      {"\xE2\x82", 0},  // cut off
      {"\xE2\x82\x41", 0},
      {"\xF0\x8F\xBF\xBF", 0},  // overlong
      {"\xF0\x90\x80\x80", 4},
      {"\xF4\x8F\xBF\xBF", 4},
      {"\xF4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xF5\x80\x80\x80", 0},
      {"\xFF", 0},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(utf8_sequence_bytes(row.text), row.want) << Json(row.text).dump();
  }
  EXPECT_EQ(utf8_characters(""), 0U);
  EXPECT_EQ(utf8_characters("a\xC3\xA9\xF0\x9F\x98\x80"), 3U);
  EXPECT_EQ(utf8_characters("\xFF\xFE"), 2U);
  EXPECT_EQ(shortened("abcd", 4), "abcd");
  EXPECT_EQ(shortened("abcde", 4), "abcd...");
  EXPECT_EQ(shortened("abc\xC3\xA9", 4), "abc...");
}

TEST(JsonTest, WritesForPeople) {
  const auto value = Json::parse(R"({"a":[1,{"b":[]}],"c":{}})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->dump_pretty(),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
}

TEST(JsonTest, ReadersAreLenientAndNullIsAbsent) {
  const auto value = Json::parse(R"({"s":"x","i":7,"b":true,"n":null,"a":[1],"d":1.5})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->find("n"), nullptr);
  EXPECT_EQ(value->find("none"), nullptr);
  EXPECT_EQ(Json("text").find("s"), nullptr);
  ASSERT_NE(value->find("s"), nullptr);
  EXPECT_EQ(value->string_or("s", "-"), "x");
  EXPECT_EQ(value->string_or("i", "-"), "-");
  EXPECT_EQ(value->integer_or("i", 0), 7);
  EXPECT_EQ(value->integer_or("d", 3), 3);
  EXPECT_EQ(value->bool_or("b", false), true);
  EXPECT_EQ(value->bool_or("n", true), true);
  EXPECT_EQ(value->array_or_empty("a").size(), 1U);
  EXPECT_TRUE(value->array_or_empty("s").empty());
  EXPECT_EQ(value->find("i")->as_double(), 7.0);
}

TEST(JsonTest, BuildersReplaceAppendAndMakeContainers) {
  Json value;
  value.set("a", 1).set("b", "x").set("a", 2);
  value.set("list", Json().push(1).push("two"));
  EXPECT_EQ(value.dump(), R"({"a":2,"b":"x","list":[1,"two"]})");
  EXPECT_EQ(Json::object({{"k", Json::array()}}).dump(), R"({"k":[]})");
}

TEST(JsonTest, KindNames) {
  struct Row {
    Json value;
    std::string_view want;
  };
  const Row rows[] = {
      {Json(), "null"},
      {Json(true), "a boolean"},
      {Json(1), "an integer"},
      {Json(1.5), "a number"},
      {Json("x"), "a string"},
      {Json::array(), "an array"},
      {Json::object(), "an object"},
  };
  for (const Row& row : rows) EXPECT_EQ(row.value.kind_name(), row.want);
}

// A random value, of at most `depth` levels of containers.
Json random_json(base::Prng& prng, int depth) {
  switch (prng.next() % (depth > 0 ? 7 : 5)) {
    case 0:
      return Json();
    case 1:
      return Json(prng.next() % 2 == 0);
    case 2:
      return Json(static_cast<std::int64_t>(prng.next() >> (prng.next() % 64)));
    case 3: {
      const double value = std::bit_cast<double>(prng.next());
      return Json(std::isfinite(value) ? value : 0.5);
    }
    case 4: {
      static constexpr std::string_view kPieces[] = {
          "a", "\"", "\\", "\n", "\x01", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "/", " "};
      std::string text;
      for (std::uint64_t i = prng.next() % 8; i > 0; --i) {
        text += kPieces[prng.next() % std::size(kPieces)];
      }
      return Json(std::move(text));
    }
    case 5: {
      Json array = Json::array();
      for (std::uint64_t i = prng.next() % 5; i > 0; --i) array.push(random_json(prng, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (std::uint64_t i = prng.next() % 24; i > 0; --i) {
        object.set("k" + std::to_string(prng.next() % 100), random_json(prng, depth - 1));
      }
      return object;
    }
  }
}

TEST(JsonTest, RandomValuesSurviveTheRoundTrip) {
  base::Prng prng(20141113);
  for (int i = 0; i < 3000; ++i) {
    const Json value = random_json(prng, 4);
    for (const std::string& text : {value.dump(), value.dump_pretty()}) {
      const auto got = Json::parse(text);
      ASSERT_TRUE(got) << text << ": " << got.error().message;
      ASSERT_EQ(*got, value) << text;
      ASSERT_EQ(got->dump(), value.dump());
    }
  }
}

TEST(JsonTest, DamagedTextNeverBreaksTheParser) {
  base::Prng prng(7);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = random_json(prng, 3).dump();
    for (std::uint64_t n = 1 + prng.next() % 3; n > 0; --n) {
      text[prng.next() % text.size()] = static_cast<char>(prng.next() & 0xFF);
    }
    const auto got = Json::parse(text);
    if (got) {
      EXPECT_EQ(*Json::parse(got->dump()), *got) << text;
    } else {
      ++refused;
      EXPECT_EQ(got.error().code, ErrorCode::kSerialization);
      EXPECT_FALSE(got.error().message.empty());
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace cotenant::codec
