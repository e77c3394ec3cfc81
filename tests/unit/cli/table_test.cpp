#include "cli/table.h"

#include <gtest/gtest.h>

#include <string>

namespace cotenant::cli {
namespace {

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"ID", "NAME"});
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.text(), "ID  NAME\n");
  table.add({"123456", "a"});
  table.add({"1", "bc"});
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.text(),
            "ID      NAME\n"
            "123456  a\n"
            "1       bc\n");
}

TEST(TableTest, CharactersCountNotBytes) {
  Table table({"A", "B"});
  table.add({"é日", "x"});
  table.add({"abc", "y"});
  EXPECT_EQ(table.text(),
            "A    B\n"
            "é日   x\n"
            "abc  y\n");
}

TEST(TableTest, EmptyCellsAndShortRows) {
  Table table({"A", "B", "C"});
  table.add({"", "", ""});
  table.add({"1"});
  table.add({"1", "", "3"});
  EXPECT_EQ(table.text(),
            "A  B  C\n"
            "\n"
            "1\n"
            "1     3\n");
}

TEST(TableTest, Bars) {
  struct Row {
    std::int64_t part;
    std::int64_t whole;
    int width;
    std::string want;
  };
  const Row rows[] = {
      {0, 100, 4, "[....]"},  {100, 100, 4, "[####]"}, {50, 100, 4, "[##..]"},
      {12, 100, 4, "[....]"}, {13, 100, 4, "[#...]"},  {99, 100, 4, "[####]"},
      {-5, 100, 4, "[....]"}, {500, 100, 4, "[####]"}, {1, 0, 4, "[....]"},
      {1, -1, 4, "[....]"},   {1, 2, 0, "[]"},         {1 << 30, 1 << 30, 3, "[###]"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(bar(row.part, row.whole, row.width), row.want) << row.part << "/" << row.whole;
  }
}

TEST(TableTest, Durations) {
  struct Row {
    double seconds;
    std::string want;
  };
  const Row rows[] = {
      {-1, "0:00"},   {0, "0:00"},     {0.9, "0:00"},     {59, "0:59"},       {60, "1:00"},
      {725, "12:05"}, {3599, "59:59"}, {3600, "1:00:00"}, {11231, "3:07:11"}, {360000, "100:00:00"},
  };
  for (const Row& row : rows) EXPECT_EQ(duration_text(row.seconds), row.want) << row.seconds;
}

TEST(TableTest, ShortIds) {
  EXPECT_EQ(short_id("0123456789abcdef0123456789abcdef"), "0123456789ab");
  EXPECT_EQ(short_id("arn:aws:ecs:r:1:task/default/0123456789abcdef"), "0123456789ab");
  EXPECT_EQ(short_id("short"), "short");
  EXPECT_EQ(short_id("ends/"), "");
  EXPECT_EQ(short_id(""), "");
}

}  // namespace
}  // namespace cotenant::cli
