// The cluster query language: what it selects, and where it says that an expression makes no sense.
#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"
#include "base/prng.h"
#include "core/query/query.h"
#include "core/query/query_values.h"

namespace cotenant::core {
namespace {

// An instance of 2018-06-18T22:28:28Z with a name, a number, an empty attribute and two groups.
class QueryTest : public ::testing::Test {
 protected:
  const std::map<std::string, std::string> attributes_ = {{"ecs.instance-type", "g6.xlarge"},
                                                          {"rack", "12"},
                                                          {"stack", "hidden"},
                                                          {"ecs.capability.gpu-sharing-mps", ""},
                                                          {"backslash", "a\\b"}};
  const std::set<std::string> groups_ = {"service:web", "family:train"};
  const std::map<std::string, std::string> custom_ = {{"row", "7"}, {"stack", "prod (old)"}};
  const QueryFacts facts_{.custom_attributes = &custom_,
                          .attributes = &attributes_,
                          .agent_connected = true,
                          .agent_version = "1.10.2",
                          .ec2_instance_id = "i-0abc",
                          .registered_at_ms = 1529360908000,
                          .running_tasks_count = 3,
                          .task_groups = &groups_};
};

TEST_F(QueryTest, Selects) {
  struct Case {
    const char* expression;
    bool want;
  };
  for (const Case& c : {
           // Attributes, each operator in both spellings.
           Case{"attribute:rack == 12", true},
           Case{"attribute:rack equals 12", true},
           Case{"attribute:rack==12", true},
           Case{"attribute:rack != 12", false},
           Case{"attribute:rack not_equals 13", true},
           Case{"attribute:rack > 9", true},  // as numbers: as text "12" comes before "9"
           Case{"attribute:rack greater_than 12", false},
           Case{"attribute:rack >= 12", true},
           Case{"attribute:rack greater_than_equal 13", false},
           Case{"attribute:rack < 9", false},
           Case{"attribute:rack less_than 13", true},
           Case{"attribute:rack <= 12", true},
           Case{"attribute:rack less_than_equal 11", false},
           Case{"attribute:ecs.instance-type > g5.xlarge", true},
           Case{"attribute:rack exists", true},
           Case{"attribute:rack !exists", false},
           Case{"attribute:none not_exists", true},
           Case{"attribute:ecs.capability.gpu-sharing-mps exists", true},
           Case{"attribute:ecs.capability.gpu-sharing-mps == \"\"", true},
           Case{"attribute:ecs.instance-type in [g5.xlarge, g6.xlarge]", true},
           Case{"attribute:ecs.instance-type in [g5.xlarge]", false},
           Case{"attribute:ecs.instance-type !in [g5.xlarge,g6.xlarge]", false},
           Case{"attribute:ecs.instance-type not_in [p5.48xlarge]", true},
           Case{"attribute:ecs.instance-type =~ g6.*", true},
           Case{"attribute:ecs.instance-type =~ g6", false},  // the whole value must match
           Case{"attribute:ecs.instance-type matches (g5|g6)[.].*", true},
           Case{"attribute:ecs.instance-type !~ g[0-9]{1,2}\\..*", false},
           Case{"attribute:ecs.instance-type not_matches p.*", true},
           Case{"attribute:stack == 'prod (old)'", true},
           Case{"attribute:stack =~ 'prod \\(.*\\)'", true},
           Case{"attribute:backslash == \"a\\\\b\"", true},
           // An attribute that is not there: the negative forms only.
           Case{"attribute:none == 1", false},
           Case{"attribute:none != 1", true},
           Case{"attribute:none > 1", false},
           Case{"attribute:none <= 1", false},
           Case{"attribute:none in [1]", false},
           Case{"attribute:none !in [1]", true},
           Case{"attribute:none =~ .*", false},
           Case{"attribute:none !~ .*", true},
           // A custom attribute stands over one of the same name.
           Case{"attribute:row == 7", true},
           Case{"attribute:stack == hidden", false},
           // The other subjects.
           Case{"agentConnected == true", true},
           Case{"agentConnected != true", false},
           Case{"agentConnected in [true, false]", true},
           Case{"agentConnected =~ t.*", true},
           Case{"agentVersion == 1.10.2", true},
           Case{"agentVersion > 1.9", true},
           Case{"agentVersion < 1.10.10", true},
           Case{"agentVersion >= 1.10.2-rc1", true},
           Case{"ec2InstanceId == i-0abc", true},
           Case{"ec2InstanceId !in [i-0abc]", false},
           Case{"registeredAt == 2018-06-18T22:28:28Z", true},
           Case{"registeredAt == 2018-06-18T22:28:28+00:00", true},
           Case{"registeredAt <= 2018-06-18T22:28:28", true},
           Case{"registeredAt > 2018-06-18", true},
           Case{"registeredAt < 2018-06-18", false},
           Case{"runningTasksCount == 3", true},
           Case{"runningTasksCount < 3", false},
           Case{"task:group == service:web", true},
           Case{"task:group == family:train", true},
           Case{"task:group != service:db", true},
           Case{"task:group != service:web", false},
           Case{"task:group in [service:db, service:web]", true},
           Case{"task:group =~ service:.*", true},
           // Joined.
           Case{"attribute:rack == 1 or attribute:rack == 12", true},
           Case{"attribute:rack == 1 || attribute:rack == 12", true},
           Case{"attribute:rack == 12 and agentConnected == false", false},
           Case{"attribute:rack == 12 && agentConnected == true", true},
           // "and" binds closer than "or".
           Case{"attribute:rack == 12 or attribute:rack == 1 and attribute:rack == 2", true},
           Case{"(attribute:rack == 12 or attribute:rack == 1) and attribute:rack == 2", false},
           Case{"not attribute:rack == 12", false},
           Case{"not(attribute:rack == 1)", true},
           Case{"!(attribute:rack == 1)", true},
           Case{"not not attribute:rack == 12", true},
           Case{"attribute:ecs.instance-type =~ g6.* and not(attribute:rack in [1, 2])", true},
           Case{"  ( ( attribute:rack\t==\n12 ) )  ", true},
           Case{"(attribute:ecs.instance-type =~ (g6).*)", true},
           Case{"ATTRIBUTE:rack == 12 or attribute:rack == 12", false},
       }) {
    const auto query = Query::parse(c.expression);
    if (std::string_view(c.expression).starts_with("ATTRIBUTE")) {
      EXPECT_FALSE(query) << "subjects are written as ECS writes them";
      continue;
    }
    ASSERT_TRUE(query) << c.expression << ": " << query.error().message;
    EXPECT_EQ(query->matches(facts_), c.want) << c.expression;
    EXPECT_EQ(query->text(), c.expression);
  }
}

TEST_F(QueryTest, NothingIsThere) {
  const QueryFacts bare;
  for (const char* expression : {"attribute:a != b", "ec2InstanceId != i-1", "task:group != g",
                                 "agentConnected == false", "agentVersion < 1.0"}) {
    const auto query = Query::parse(expression);
    ASSERT_TRUE(query) << query.error().message;
    EXPECT_TRUE(query->matches(bare)) << expression;
  }
}

TEST(QueryErrors, PointAtTheColumn) {
  struct Case {
    std::string expression;
    const char* column;
    const char* says;
  };
  for (const Case& c : {
           Case{"", "column 1:", "expected a subject"},
           Case{"   ", "column 4:", "found the end"},
           Case{"rack == 12", "column 1:", "found 'rack'"},
           Case{"attribute: == 12", "column 1:", "the attribute's name"},
           Case{"attribute:rack", "column 15:", "expected an operator that an attribute takes"},
           Case{"attribute:rack = 12", "column 16:", "found '='"},
           Case{"attribute:rack ==", "column 18:", "expected an argument, found the end"},
           Case{"attribute:rack == )", "column 19:", "expected an argument, found ')'"},
           Case{"attribute:rack == 12 attribute:a exists", "column 22:", "'and', 'or' or the end"},
           Case{"attribute:rack == 12 and", "column 25:", "expected a subject"},
           Case{"(attribute:rack == 12", "column 22:", "expected ')'"},
           Case{"attribute:rack == 12)", "column 21:", "'and', 'or' or the end"},
           Case{"attribute:rack in 12", "column 19:", "a list in square brackets"},
           Case{"attribute:rack in [12", "column 22:", "',' or ']'"},
           Case{"attribute:rack in []", "column 20:", "expected an argument"},
           Case{"attribute:rack in [1,]", "column 22:", "expected an argument"},
           Case{"attribute:rack == \"12", "column 19:", "never closed"},
           Case{"attribute:rack =~ a(b", "column 19:", "not a regular expression: missing )"},
           Case{"attribute:rack =~ (a)\\1", "column 19:", "not a regular expression"},
           Case{"agentConnected == yes", "column 19:", "true or false"},
           Case{"agentConnected > true", "column 16:", "==, !=, in, !in, =~, !~"},
           Case{"agentVersion =~ 1.*", "column 14:", "==, !=, >, >=, <, <="},
           Case{"agentVersion > new", "column 16:", "a version such as"},
           Case{"registeredAt > yesterday", "column 16:", "a time such as"},
           Case{"registeredAt > 2018-13-01", "column 16:", "a time such as"},
           Case{"runningTasksCount < 1.5", "column 21:", "a whole number"},
           Case{"runningTasksCount < 9223372036854775808", "column 21:", "a whole number"},
           Case{"runningTasksCount exists", "column 19:", "found 'exists'"},
           Case{std::string(base::limits::kQueryDepth + 1, '('), "column 101:", "nested deeper"},
       }) {
    const auto query = Query::parse(c.expression);
    ASSERT_FALSE(query) << c.expression;
    EXPECT_EQ(query.error().code, base::ErrorCode::kInvalidParameter);
    EXPECT_TRUE(query.error().message.starts_with(c.column)) << query.error().message;
    EXPECT_NE(query.error().message.find(c.says), std::string::npos) << query.error().message;
  }
}

TEST(QueryErrors, TooLong) {
  const std::string head = "attribute:a == ";
  const std::string fits = head + std::string(base::limits::kQueryChars - head.size(), 'x');
  EXPECT_TRUE(Query::parse(fits));
  const auto query = Query::parse(fits + "x");
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().message, "2001 characters long; at most 2000 are taken");
}

// A thousand levels, in each of the ways to nest, are an error and not a stack overflow.
TEST(QueryErrors, NestedTooDeep) {
  for (const char* open : {"(", "!", "not ", "not("}) {
    std::string expression;
    while (expression.size() + 16 < base::limits::kQueryChars) expression += open;
    const auto query = Query::parse(expression);
    ASSERT_FALSE(query);
    EXPECT_NE(query.error().message.find("nested deeper than 100 levels"), std::string::npos);
  }
  std::string chain = "attribute:a exists";
  while (chain.size() + 32 < base::limits::kQueryChars) chain += " or attribute:a exists";
  EXPECT_TRUE(Query::parse(chain));
}

// Patterns that take a backtracking engine ages: a hang here is the failure.
TEST(QueryPatterns, AreBounded) {
  const std::map<std::string, std::string> attributes = {{"a", std::string(5000, 'a') + "!"}};
  const QueryFacts facts{.attributes = &attributes};
  for (const char* expression : {"attribute:a =~ (a+)+", "attribute:a =~ (a|aa)*b",
                                 "attribute:a =~ (a*)*(a*)*(a*)*b", "attribute:a =~ (.*a){20}b"}) {
    const auto query = Query::parse(expression);
    ASSERT_TRUE(query) << query.error().message;
    EXPECT_FALSE(query->matches(facts)) << expression;
  }
  const auto huge = Query::parse("attribute:a =~ ((a{1000}){1000}){1000}");
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("not a regular expression"), std::string::npos);
}

TEST(QueryAttributesOnly, KnowsWhatItAsks) {
  EXPECT_TRUE(Query::parse("attribute:a == 1 and not attribute:b exists")->attributes_only());
  EXPECT_FALSE(Query::parse("attribute:a == 1 and runningTasksCount < 3")->attributes_only());
  EXPECT_FALSE(Query::parse("task:group == g")->attributes_only());
}

// Any bytes at all are an expression or an error; nothing is read past the end (the sanitizer pass
// looks).
TEST(QueryProperty, AnyTextIsAnExpressionOrAnError) {
  const std::vector<std::string> pieces = {
      "attribute:a", " ",   "==",           "=~",           "in",   "[",  "]", "(",
      ")",           "and", "or",           "not",          "!",    "\"", "'", "\\",
      ",",           "1",   "agentVersion", "registeredAt", "\xff", "{",  "}", "x"};
  base::Prng prng(7);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 3 == 0 ? "attribute:a =~ " : "";
    for (std::uint64_t n = prng.next() % 12; n > 0; --n)
      text += pieces[prng.next() % pieces.size()];
    const auto query = Query::parse(text);
    parsed += query ? 1 : 0;
    if (query) {
      EXPECT_EQ(query->matches({}), query->matches({}));
    }
  }
  EXPECT_GT(parsed, 100);
}

TEST(QueryValues, ComparesVersions) {
  const char* ascending[] = {
      "0.9", "1.0-beta", "1.0", "1.2.0", "1.2.1", "1.10", "99999999999999999999"};
  for (std::size_t i = 0; i < std::size(ascending); ++i) {
    for (std::size_t j = 0; j < std::size(ascending); ++j) {
      EXPECT_EQ(compare_versions(ascending[i], ascending[j]), i <=> j)
          << ascending[i] << " against " << ascending[j];
    }
  }
  EXPECT_EQ(compare_versions("1.2", "1.2.0"), std::strong_ordering::equal);
  EXPECT_EQ(compare_versions("01.2", "1.02"), std::strong_ordering::equal);
}

}  // namespace
}  // namespace cotenant::core
