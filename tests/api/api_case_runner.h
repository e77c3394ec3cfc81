// Runs a case file against a TestPlane and says where it does not go as written.
#pragma once

#include <string>
#include <vector>

namespace cotenant::test {

// "<file>:<line>: <step>: what came and what was wanted", one entry a failure. Empty: all went
// well. Every successful answer of an ECS operation is also checked against ECS's model.
std::vector<std::string> run_case_file(const std::string& path);

}  // namespace cotenant::test
