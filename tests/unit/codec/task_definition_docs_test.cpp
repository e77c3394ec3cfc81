// docs/task-definitions.md against the tables that decide: the documentation cannot say something else.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "codec/member_verdicts.h"

namespace cotenant::codec {
namespace {

struct DocumentedMember {
  std::string verdict;
  std::string text;
};
using Documented = std::map<std::string, DocumentedMember>;

// "## Shape" begins a table; its rows are "| `member` | verdict | text |".
std::map<std::string, Documented> read_documentation() {
  std::ifstream file(std::string(COTENANT_DOCS) + "/task-definitions.md");
  EXPECT_TRUE(file) << "docs/task-definitions.md is not there";
  std::map<std::string, Documented> shapes;
  std::string shape;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) shape = line.substr(3);
    if (line.rfind("| `", 0) != 0) continue;
    const std::size_t name_end = line.find('`', 3);
    const std::size_t verdict_at = name_end + 4;
    const std::size_t verdict_end = line.find(" |", verdict_at);
    const std::size_t text_at = std::min(verdict_end + 3, line.size());
    std::string text = line.substr(text_at);
    text.resize(text.size() - std::min<std::size_t>(text.size(), 2));
    shapes[shape][line.substr(3, name_end - 3)] = {
        line.substr(verdict_at, verdict_end - verdict_at), text};
  }
  return shapes;
}

std::string_view word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCarried:
      return "carried";
    case Verdict::kWarned:
      return "warned";
    case Verdict::kRefused:
      return "refused";
  }
  return "";
}

TEST(TaskDefinitionDocsTest, SaysOfEachMemberWhatTheTablesSay) {
  const auto documentation = read_documentation();
  struct Row {
    const char* shape;
    const std::vector<MemberVerdict>& (*table)();
  };
  for (const Row& row : {Row{"RegisterTaskDefinition", task_definition_members},
                         Row{"ContainerDefinition", container_definition_members},
                         Row{"Volume", volume_members}, Row{"PortMapping", port_mapping_members},
                         Row{"LogConfiguration", log_configuration_members}}) {
    SCOPED_TRACE(row.shape);
    const auto found = documentation.find(row.shape);
    ASSERT_NE(found, documentation.end()) << "has no table";
    EXPECT_EQ(found->second.size(), row.table().size());
    for (const MemberVerdict& member : row.table()) {
      const auto documented = found->second.find(std::string(member.member));
      if (documented == found->second.end()) {
        ADD_FAILURE() << member.member << " is not documented";
        continue;
      }
      EXPECT_EQ(documented->second.verdict, word_of(member.verdict)) << member.member;
      if (member.verdict != Verdict::kCarried) {
        EXPECT_EQ(documented->second.text, member.text) << member.member;
      }
    }
  }
}

}  // namespace
}  // namespace cotenant::codec
