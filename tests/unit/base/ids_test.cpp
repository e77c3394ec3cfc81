#include "base/ids.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace cotenant::base {
namespace {

using std::string_view_literals::operator""sv;

const std::string kLongestName(limits::kNameChars, 'n');
const std::string kTooLongName(limits::kNameChars + 1, 'n');

TEST(ArnFormatTest, WritesTheLongFormat) {
  const ArnFormat arn("eu-west-1", "123456789012");
  EXPECT_EQ(arn.cluster("prod"), "arn:aws:ecs:eu-west-1:123456789012:cluster/prod");
  EXPECT_EQ(arn.task("prod", "0a1b"), "arn:aws:ecs:eu-west-1:123456789012:task/prod/0a1b");
  EXPECT_EQ(arn.container_instance("prod", "0a1b"),
            "arn:aws:ecs:eu-west-1:123456789012:container-instance/prod/0a1b");
  EXPECT_EQ(arn.container("prod", "0a1b", "2c3d"),
            "arn:aws:ecs:eu-west-1:123456789012:container/prod/0a1b/2c3d");
  EXPECT_EQ(arn.task_definition("llm", 7),
            "arn:aws:ecs:eu-west-1:123456789012:task-definition/llm:7");
}

TEST(ResourceRefTest, ReadsNamesIdsAndArns) {
  struct Row {
    std::string_view name;
    std::string_view type;
    std::string text;
    std::string want_id;
    std::optional<std::string> want_cluster;
  };
  const Row rows[] = {
      {"bare cluster", "cluster", "default", "default", {}},
      {"all allowed characters", "cluster", "aZ09-_", "aZ09-_", {}},
      {"longest name", "cluster", kLongestName, kLongestName, {}},
      {"cluster ARN", "cluster", "arn:aws:ecs:us-east-1:000000000000:cluster/prod", "prod", {}},
      {"bare task id",
       "task",
       "0123456789abcdef0123456789abcdef",
       "0123456789abcdef0123456789abcdef",
       {}},
      {"task ARN", "task", "arn:aws:ecs:us-east-1:000000000000:task/prod/0a1b", "0a1b", "prod"},
      {"old task ARN without cluster",
       "task",
       "arn:aws:ecs:us-east-1:000000000000:task/0a1b",
       "0a1b",
       {}},
      {"other region, account and partition", "task", "arn:aws-cn:ecs:cn-north-1:1:task/c/i", "i",
       "c"},
      {"instance ARN", "container-instance",
       "arn:aws:ecs:us-east-1:000000000000:container-instance/prod/0a1b", "0a1b", "prod"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto ref = parse_resource_ref(row.type, row.text);
    ASSERT_TRUE(ref.has_value()) << ref.error().message;
    EXPECT_EQ(ref->id, row.want_id);
    EXPECT_EQ(ref->cluster, row.want_cluster);
  }
}

TEST(ResourceRefTest, RefusesEverythingElse) {
  struct Row {
    std::string_view name;
    std::string_view type;
    std::string_view text;
  };
  const Row rows[] = {
      {"empty", "cluster", ""},
      {"too long", "cluster", kTooLongName},
      {"space", "cluster", "my cluster"},
      {"leading space", "cluster", " default"},
      {"line break", "cluster", "default\n"},
      {"NUL", "cluster", "default\0x"sv},
      {"UTF-8 letter", "cluster", "caf\xC3\xA9"},
      {"path", "cluster", "../etc/passwd"},
      {"slash", "cluster", "prod/x"},
      {"dot", "cluster", "prod.eu"},
      {"only the scheme", "task", "arn:"},
      {"too few parts", "task", "arn:aws:ecs:us-east-1:000000000000"},
      {"empty resource", "task", "arn:aws:ecs:us-east-1:000000000000:"},
      {"type without id", "task", "arn:aws:ecs:us-east-1:000000000000:task"},
      {"type with empty id", "task", "arn:aws:ecs:us-east-1:000000000000:task/"},
      {"cluster with empty id", "task", "arn:aws:ecs:us-east-1:000000000000:task/prod/"},
      {"empty cluster", "task", "arn:aws:ecs:us-east-1:000000000000:task//0a1b"},
      {"one part too many", "task", "arn:aws:ecs:us-east-1:000000000000:task/prod/0a1b/x"},
      {"trailing part", "task", "arn:aws:ecs:us-east-1:000000000000:task/prod/0a1b:1"},
      {"another service", "task", "arn:aws:s3:us-east-1:000000000000:task/prod/0a1b"},
      {"another type", "task", "arn:aws:ecs:us-east-1:000000000000:cluster/prod"},
      {"type that only begins alike", "task",
       "arn:aws:ecs:us-east-1:000000000000:task-definition/web:1"},
      {"type is a prefix of the asked one", "container-instance",
       "arn:aws:ecs:us-east-1:000000000000:container/prod/0a1b"},
      {"upper-case scheme", "task", "ARN:aws:ecs:us-east-1:000000000000:task/prod/0a1b"},
      {"space in the id", "task", "arn:aws:ecs:us-east-1:000000000000:task/prod/0a 1b"},
      // A cluster stands in no cluster.
      {"cluster ARN with two names", "cluster", "arn:aws:ecs:us-east-1:000000000000:cluster/a/b"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto ref = parse_resource_ref(row.type, row.text);
    ASSERT_FALSE(ref.has_value()) << "read as '" << ref->id << "'";
    EXPECT_EQ(ref.error().code, ErrorCode::kInvalidParameter);
    EXPECT_NE(ref.error().message.find(row.type), std::string::npos) << ref.error().message;
  }
}

TEST(TaskDefinitionRefTest, ReadsFamilyRevisionAndArn) {
  struct Row {
    std::string_view name;
    std::string text;
    std::string want_family;
    std::optional<std::int64_t> want_revision;
  };
  const Row rows[] = {
      {"family", "web", "web", {}},
      {"longest family", kLongestName, kLongestName, {}},
      {"revision", "web:3", "web", 3},
      {"largest revision", "web:9223372036854775807", "web",
       std::numeric_limits<std::int64_t>::max()},
      {"ARN", "arn:aws:ecs:us-east-1:000000000000:task-definition/web:12", "web", 12},
      {"ARN of a family", "arn:aws:ecs:us-east-1:000000000000:task-definition/web", "web", {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto ref = parse_task_definition_ref(row.text);
    ASSERT_TRUE(ref.has_value()) << ref.error().message;
    EXPECT_EQ(ref->family, row.want_family);
    EXPECT_EQ(ref->revision, row.want_revision);
  }
}

TEST(TaskDefinitionRefTest, RefusesEverythingElse) {
  const std::string too_long = kTooLongName + ":1";
  const std::string_view rows[] = {
      "",
      ":",
      ":1",
      "web:",
      "web:0",
      "web:-1",
      "web:+1",
      "web: 1",
      "web:1 ",
      "web:0x1",
      "web:1.0",
      "web:9223372036854775808",
      "web:99999999999999999999999999",
      "web:1:2",
      "web:latest",
      "we b:1",
      "web/1",
      "web\0:1"sv,
      "web:1\0"sv,
      too_long,
      "arn:",
      "arn:aws:ecs:us-east-1:000000000000:task-definition/",
      "arn:aws:ecs:us-east-1:000000000000:task-definition/:1",
      "arn:aws:ecs:us-east-1:000000000000:task-definition/web:0",
      "arn:aws:ecs:us-east-1:000000000000:task-definition/a/web:1",
      "arn:aws:ecs:us-east-1:000000000000:task/web:1",
      "arn:aws:iam:us-east-1:000000000000:task-definition/web:1",
  };
  for (const std::string_view text : rows) {
    const auto ref = parse_task_definition_ref(text);
    ASSERT_FALSE(ref.has_value()) << "'" << text << "' read as '" << ref->family << "'";
    EXPECT_EQ(ref.error().code, ErrorCode::kInvalidParameter) << text;
  }
}

// What ArnFormat writes, the parsers read back.
TEST(ArnRoundTripTest, ParsersReadWhatArnFormatWrites) {
  const ArnFormat arn("us-east-1", "000000000000");
  const auto task = parse_resource_ref("task", arn.task("prod", "0a1b"));
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->id, "0a1b");
  EXPECT_EQ(task->cluster, "prod");
  const auto instance =
      parse_resource_ref("container-instance", arn.container_instance("prod", "2c3d"));
  ASSERT_TRUE(instance.has_value());
  EXPECT_EQ(instance->id, "2c3d");
  const auto cluster = parse_resource_ref("cluster", arn.cluster("prod"));
  ASSERT_TRUE(cluster.has_value());
  EXPECT_EQ(cluster->id, "prod");
  const auto definition = parse_task_definition_ref(arn.task_definition("web", 41));
  ASSERT_TRUE(definition.has_value());
  EXPECT_EQ(definition->family, "web");
  EXPECT_EQ(definition->revision, 41);
}

}  // namespace
}  // namespace cotenant::base
