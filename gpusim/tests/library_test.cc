// The two libraries must load in any glibc image: what they need, and what they export.
#include <gtest/gtest.h>

#include <regex>

#include "tests/harness.h"

namespace gpusim::test {
namespace {

TEST(Libraries, NeedOnlyAnOldGlibc) {
  for (const char* name : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    const std::string content = read_file(binary(name));
    ASSERT_FALSE(content.empty());
    const std::regex version("GLIBC_2\\.([0-9]+)");
    for (std::sregex_iterator at(content.begin(), content.end(), version), end; at != end; ++at) {
      EXPECT_LE(std::stoi((*at)[1]), 17) << name << " needs " << at->str();
    }
    EXPECT_EQ(content.find("GLIBCXX_"), std::string::npos) << name << " needs libstdc++";
    EXPECT_EQ(content.find("libstdc++.so"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace gpusim::test
