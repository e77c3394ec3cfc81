// Every *.case file of this folder is a test. What it says is in the file; how, in case_file.h.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "api_case_runner.h"

namespace cotenant::test {
namespace {

std::vector<std::string> case_files() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(COTENANT_API_CASES)) {
    if (entry.path().extension() == ".case") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class ApiCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(ApiCaseTest, GoesAsWritten) {
  for (const std::string& failure : run_case_file(GetParam())) ADD_FAILURE() << failure;
}

// A case that says something wrong must fail, and say where and why.
TEST(ApiCaseRunnerTest, WhatIsNotAsWrittenFails) {
  struct Row {
    std::string text;
    std::string want;  // empty: goes as written
  };
  const std::string list = "\nname: n\ntarget: ListClusters\n";
  const Row rows[] = {
      {list, ""},
      {list + "reply: {\"clusterArns\": [\"~/default\"], \"nextToken\": null}", ""},
      {list + "status: 400", ":2: n: came status 200, wanted 400"},
      {list + "reply: {\"clusterArns\": []}", "clusterArns: came 1 elements, wanted 0"},
      {list + "reply: {\"clusterArns\": [\"~/other\"]}", "clusterArns[0]: came \"arn:"},
      {list + "reply: {\"clusterArns\": null}", "clusterArns: came ["},
      {list + "reply: {\"nextToken\": \"?\"}", "nextToken: came \"nothing\""},
      {list + "reply: {\"clusterArns\": [\"~\", \"x\"]}", "clusterArns: no element is \"x\""},
      {list + "reply: {\"clusterArns\": [\"$a\"]}" + list + "reply: {\"clusterArns\": [\"x$a\"]}",
       ":5: n: clusterArns[0]: came"},
      {list + "reply: {\"clusterArns\": [\"x$a\"]}", "$a has no value yet"},
      {list + "body: {\"nextToken\": \"$a\"}", "$a has no value yet"},
      {list + "reply: {", "reply: JSON"},
      {list + "warning: w", "wanted the warning 'w', came []"},
      {list + "body: {\"x\": 1}\nwarning: none", "wanted no warning, came [x: not a member"},
      {list + "status: %1\neach:\n  200\n  201", ":7: n [201]: came status 200, wanted 201"},
      {list + "status: 200\nstatus: 200", "line 5: 'status' stands twice"},
      {"status: 200", "line 1: 'status' needs a 'name' before it"},
      {"names: x", "line 1: 'names' is no key of a case"},
      {"  x", "line 1: continues nothing"},
      {"", "the file has no steps"},
      {"observe: nobody main RUNNING", ":1: observe: no connected agent has the task 'nobody'"},
      {"refused: i1 {} => x", ":1: refused: the hello was accepted"},
      {"refused: i1 {\"cluster\": \"x\"} => y", ":1: refused: came 'cluster: 'x' does not exist"},
      {"desired: i1 [\"?\"]", ":1: desired: "},
      {"time: 5", ":1: time: must be `+SECONDSs`"},
      {"store: full", ":1: store: must be refuse or works"},
  };
  char folder[] = "/tmp/cotenant-case-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/x.case";
  for (const Row& row : rows) {
    SCOPED_TRACE(row.text);
    std::ofstream(path, std::ios::trunc) << row.text;
    const std::vector<std::string> failures = run_case_file(path);
    ASSERT_EQ(failures.size(), row.want.empty() ? 0U : 1U) << testing::PrintToString(failures);
    if (!row.want.empty()) {
      EXPECT_NE(failures[0].find(row.want), std::string::npos) << failures[0];
    }
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Cases, ApiCaseTest, testing::ValuesIn(case_files()), test_name);

}  // namespace
}  // namespace cotenant::test
