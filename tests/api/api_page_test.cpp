// docs/api.md says of every operation of ECS what the program does with it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "case_file.h"
#include "codec/api_shapes.h"
#include "server/api_refusals.h"
#include "server/api_table.h"

namespace cotenant::test {
namespace {

struct PageRow {
  std::string verdict;
  std::string text;
};

// The rows of three columns with a verdict in the second.
std::map<std::string, PageRow> page_rows() {
  std::map<std::string, PageRow> rows;
  std::ifstream file(COTENANT_API_PAGE);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("| ", 0) != 0) continue;
    const std::vector<std::string> columns = split_columns(line.substr(2, line.size() - 4));
    if (columns.size() != 3 || columns[1].empty()) continue;
    EXPECT_TRUE(rows.emplace(columns[0], PageRow{columns[1], columns[2]}).second)
        << columns[0] << " stands twice";
  }
  return rows;
}

TEST(ApiPageTest, SaysOfEveryOperationWhatTheProgramDoesWithIt) {
  std::map<std::string, PageRow> rows = page_rows();
  for (const codec::Operation& operation : codec::api_operations()) {
    SCOPED_TRACE(operation.name);
    const auto row = rows.find(std::string(operation.name));
    ASSERT_NE(row, rows.end()) << "has no row in docs/api.md";
    const bool offered = server::find_ecs_operation(operation.name) != nullptr;
    EXPECT_EQ(row->second.verdict, offered ? "offered" : "refused");
    if (offered) {
      EXPECT_NE(row->second.text, "");
    } else {
      EXPECT_NE(server::refusal_reason(operation.name), "");
      EXPECT_EQ(row->second.text, server::refusal_reason(operation.name));
    }
    rows.erase(row);
  }
  for (const auto& [name, row] : rows) ADD_FAILURE() << name << " is no operation of ECS";
}

}  // namespace
}  // namespace cotenant::test
