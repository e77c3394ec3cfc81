// Every *.case file of this folder is a test. What it says is in the file; how, in case_file.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
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

INSTANTIATE_TEST_SUITE_P(Cases, ApiCaseTest, testing::ValuesIn(case_files()), test_name);

}  // namespace
}  // namespace cotenant::test
