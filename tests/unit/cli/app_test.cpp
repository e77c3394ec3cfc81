#include "cli/app.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "cli/exit_code.h"

namespace cotenant::cli {
namespace {

struct Outcome {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

Outcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "cotenant");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  Outcome outcome;
  outcome.exit_code = run_app(static_cast<int>(argv.size()), argv.data(), Composition{});
  outcome.output = testing::internal::GetCapturedStdout();
  outcome.errors = testing::internal::GetCapturedStderr();
  return outcome;
}

const std::vector<std::vector<std::string>> kClientVerbs = {
    {"run", "a-family"}, {"explain", "a-family"}, {"ps"}, {"stop", "--all"}, {"gpus"},
    {"token", "list"}};

// Nobody listens at either address; the error names the one that was tried.
TEST(AppTest, TheEndpointOptionWinsOverTheVariable) {
  ::setenv("COTENANT_ENDPOINT", "unix:///nowhere/variable.sock", 1);
  for (std::vector<std::string> verb : kClientVerbs) {
    SCOPED_TRACE(verb.front());
    Outcome outcome = run(verb);
    EXPECT_EQ(outcome.exit_code, kExitUnreachable);
    EXPECT_NE(outcome.errors.find("unix:///nowhere/variable.sock"), std::string::npos)
        << outcome.errors;
    verb.insert(verb.end(), {"--endpoint", "unix:///nowhere/option.sock"});
    outcome = run(verb);
    EXPECT_EQ(outcome.exit_code, kExitUnreachable);
    EXPECT_NE(outcome.errors.find("unix:///nowhere/option.sock"), std::string::npos)
        << outcome.errors;
  }
  ::unsetenv("COTENANT_ENDPOINT");
}

TEST(AppTest, WrongCommandLines) {
  const struct {
    std::vector<std::string> arguments;
    std::string want;
  } rows[] = {
      {{}, "subcommand"},
      {{"explain"}, "what"},
      {{"explain", "f", "--count", "0"}, "--count"},
      {{"explain", "f", "--count", "101"}, "--count"},
      {{"explain", "f", "--instances", "101"}, "--instances"},
      {{"simulate", "--nodes", "n", "--pods", "p", "--gpu-mib", "0"}, "--gpu-mib"},
      {{"simulate", "--nodes", "n", "--pods", "p", "--mib", "0"}, "--mib"},
      {{"simulate", "--nodes", "n", "--pods", "p", "--gpu-mib", "134217729"}, "--gpu-mib"},
      {{"up", "--simulate-gpus", ""}, "--simulate-gpus"},
      {{"run"}, "what"},
      {{"run", "f", "--count", "0"}, "--count"},
      {{"run", "f", "--count", "11"}, "--count"},
      {{"stop"}, "task or --all"},
      {{"stop", "abcd", "--all"}, "--all"},
      {{"gpus", "--output", "xml"}, "--output"},
      {{"up", "--data-dir", ""}, "--data-dir"},
      {{"up", "--account-id", "abc"}, "--account-id"},
      {{"up", "--region", "a b"}, "--region"},
      {{"down", "--data-dir", ""}, "--data-dir"},
      {{"up", "--auth", "none"}, "--auth"},
      {{"token"}, "subcommand"},
      {{"token", "revoke"}, "id"},
      {{"token", "create", "--expires-in", "59"}, "--expires-in"},
      {{"agent"}, "--server"},
      {{"ps", "--no-such-option"}, "--no-such-option"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = run(row.arguments);
    EXPECT_EQ(outcome.exit_code, kExitUsage) << row.want;
    EXPECT_NE(outcome.errors.find(row.want), std::string::npos) << outcome.errors;
  }
}

TEST(AppTest, SimulateTakesTheLastSeedThereIs) {
  const std::string path = "/tmp/cotenant-app-test-trace-" + std::to_string(::getpid());
  std::ofstream(path + ".nodes") << "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,8000,2,T4\n";
  std::ofstream(path + ".pods") << "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np1,1,1,1,500\n";
  const Outcome outcome =
      run({"simulate", "--nodes", path + ".nodes", "--pods", path + ".pods", "--policy", "TightGpu",
           "--seed", "18446744073709551614..18446744073709551615"});
  EXPECT_EQ(outcome.exit_code, kExitOk) << outcome.errors;
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3) << outcome.output;
  for (const char* end : {".nodes", ".pods"}) ::unlink((path + end).c_str());
}

TEST(AppTest, SimulateRefusesWhatIsNoNumber) {
  for (const char* option : {"--ratio", "--churn"}) {
    const Outcome outcome = run({"simulate", "--nodes", "n", "--pods", "p", option, "nan"});
    EXPECT_NE(outcome.exit_code, kExitOk);
    EXPECT_NE(outcome.errors.find(option), std::string::npos) << outcome.errors;
  }
}

TEST(AppTest, FilesThatAreNoDefinition) {
  const struct {
    const char* path;
    const char* want;
  } rows[] = {
      {"/nowhere/task.json", "No such file"},
      {"/dev/zero", "not a regular file"},
      {"/etc/", "not a regular file"},
  };
  for (const auto& row : rows) {
    const Outcome outcome = run({"run", row.path, "--endpoint", "unix:///nowhere/x.sock"});
    EXPECT_EQ(outcome.exit_code, kExitRefused);
    EXPECT_NE(outcome.errors.find(row.want), std::string::npos) << outcome.errors;
  }
}

TEST(AppTest, NodeVerbsRefuseBeforeTheyLeaveAnything) {
  const std::string folder = "/tmp/cotenant-app-test-" + std::to_string(::getpid());
  const Outcome outcome = run({"agent", "--server", "http://127.0.0.1:1", "--data-dir", folder,
                               "--run-dir", "/tmp/" + std::string(70, 'l')});
  EXPECT_EQ(outcome.exit_code, kExitRefused);
  EXPECT_NE(outcome.errors.find("allow 57"), std::string::npos) << outcome.errors;
  EXPECT_NE(::access(folder.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace cotenant::cli
