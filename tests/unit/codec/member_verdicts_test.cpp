#include "codec/member_verdicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "codec/api_shapes.h"

namespace cotenant::codec {
namespace {

using Table = std::vector<MemberVerdict>;

struct Row {
  std::string_view shape;
  const Table& (*table)();
};

constexpr Row kTables[] = {
    {"RegisterTaskDefinitionRequest", task_definition_members},
    {"ContainerDefinition", container_definition_members},
    {"Volume", volume_members},
    {"PortMapping", port_mapping_members},
    {"LogConfiguration", log_configuration_members},
    {"RunTaskRequest", run_task_members},
    {"StartTaskRequest", start_task_members},
    {"TaskOverride", task_override_members},
    {"ContainerOverride", container_override_members},
};

std::set<std::string> members_of_model(std::string_view name) {
  std::set<std::string> members;
  for (const Shape& shape : api_shapes()) {
    if (shape.name != name) continue;
    for (const ShapeMember& member : shape.members) members.insert(std::string(member.name));
  }
  return members;
}

// A member that ECS adds must be decided about before it can slip through.
TEST(MemberVerdictsTest, TablesNameExactlyTheMembersOfEcs) {
  for (const Row& row : kTables) {
    SCOPED_TRACE(row.shape);
    std::set<std::string> named;
    for (const MemberVerdict& verdict : row.table()) {
      EXPECT_TRUE(named.insert(std::string(verdict.member)).second)
          << verdict.member << " stands twice";
    }
    const std::set<std::string> model = members_of_model(row.shape);
    EXPECT_FALSE(model.empty());
    EXPECT_EQ(named, model);
  }
}

TEST(MemberVerdictsTest, WhatIsNotCarriedOutHasWords) {
  for (const Row& row : kTables) {
    for (const MemberVerdict& verdict : row.table()) {
      EXPECT_EQ(verdict.text.empty(), verdict.verdict == Verdict::kCarried)
          << row.shape << "." << verdict.member;
    }
  }
}

TEST(MemberVerdictsTest, Applied) {
  static const Table table = {{"carried", Verdict::kCarried, ""},
                              {"warned", Verdict::kWarned, "has no effect"},
                              {"refused", Verdict::kRefused, "use carried"}};
  struct Case {
    std::string name;
    std::string object;
    std::string error;  // empty: none
    std::vector<std::string> warnings;
  };
  const Case cases[] = {
      {"nothing", "{}", "", {}},
      {"carried", R"({"carried":1})", "", {}},
      {"unknown ones are someone else's business", R"({"unknown":1})", "", {}},
      {"warned", R"({"warned":1})", "", {"a[0].warned: has no effect"}},
      {"refused", R"({"warned":1,"refused":0})", "a[0].refused: ", {"a[0].warned: has no effect"}},
      {"null", R"({"warned":null,"refused":null})", "", {}},
      {"false", R"({"warned":false,"refused":false})", "", {}},
      {"an empty list", R"({"refused":[]})", "", {}},
      {"an empty object", R"({"refused":{}})", "", {}},
      {"an empty string", R"({"refused":""})", "", {}},
      {"true", R"({"refused":true})", "a[0].refused: ", {}},
      {"zero is a value", R"({"refused":0})", "a[0].refused: ", {}},
      {"a list", R"({"refused":[0]})", "a[0].refused: ", {}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    const auto object = Json::parse(test.object);
    ASSERT_TRUE(object);
    std::vector<std::string> warnings;
    const base::Status status = apply_verdicts(table, *object, "a[0].", warnings);
    EXPECT_EQ(warnings, test.warnings);
    ASSERT_EQ(status.has_value(), test.error.empty());
    if (status) continue;
    EXPECT_EQ(status.error().code, base::ErrorCode::kUnsupportedFeature);
    EXPECT_EQ(status.error().message.rfind(test.error, 0), 0U) << status.error().message;
    EXPECT_NE(status.error().message.find("use carried"), std::string::npos);
  }
}

}  // namespace
}  // namespace cotenant::codec
