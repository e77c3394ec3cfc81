#include "adapters/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/process_identity.h"

namespace cotenant::adapters {

using base::identify_process;
using base::parent_of;
using base::ProcessIdentity;
namespace {

using base::ErrorCode;
using std::chrono::milliseconds;

bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ChildProcessTest, Outcomes) {
  const struct {
    const char* name;
    const char* script;
    std::string input;
    bool want_timed_out;
    int want_exit_code;
    int want_signal;
    const char* want_output;
    const char* want_error;
  } cases[] = {
      {"echo", "cat; echo e >&2", "in", false, 0, 0, "in", "e\n"},
      {"exit code", "exit 7", "", false, 7, 0, "", ""},
      {"signal", "kill -9 $$", "", false, 0, SIGKILL, "", ""},
      {"input not read", "exec <&-; echo ok", std::string(4096, 'x'), false, 0, 0, "ok\n", ""},
      {"hangs", "echo begun; sleep 60", "", true, 0, SIGKILL, "begun\n", ""},
      {"ignores TERM", "trap '' TERM INT HUP; echo on; sleep 60", "", true, 0, SIGKILL, "on\n", ""},
      // Somebody else holds the output open, but the child itself has ended.
      {"grandchild", "sleep 60 & echo $!", "", false, 0, 0, nullptr, ""},
      {"descriptors", "ls /proc/self/fd", "", false, 0, 0, "0\n1\n2\n3\n", ""},
      {"environment", "echo \"$A-$HOME\"", "", false, 0, 0, "b-\n", ""},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    ChildSpec spec;
    spec.program = "/bin/sh";
    spec.arguments = {"-c", test.script};
    spec.environment = {"A=b", "PATH=/usr/bin:/bin"};
    spec.input = test.input;
    spec.timeout = milliseconds(test.want_timed_out ? 300 : 10000);
    const auto outcome = run_child(spec);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
    EXPECT_EQ(outcome->timed_out, test.want_timed_out);
    EXPECT_EQ(outcome->exit_code, test.want_exit_code);
    EXPECT_EQ(outcome->signal, test.want_signal);
    if (test.want_output != nullptr) {
      EXPECT_EQ(outcome->output, test.want_output);
    } else {
      EXPECT_EQ(::kill(std::stoi(outcome->output), SIGKILL), 0);
    }
    EXPECT_EQ(outcome->error, test.want_error);
  }
}

TEST(ChildProcessTest, OutputIsBoundedAndInputRefusedBeyondItsLimit) {
  ChildSpec spec;
  spec.program = "/bin/sh";
  spec.arguments = {"-c", "head -c 3000000 /dev/zero"};
  spec.environment = {"PATH=/usr/bin:/bin"};
  const auto outcome = run_child(spec);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_TRUE(outcome->succeeded());
  EXPECT_EQ(outcome->output.size(), kChildOutputBytes);
  spec.input = std::string(kChildInputBytes + 1, 'x');
  const auto refused = run_child(spec);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
}

TEST(ProcessIdentityTest, OnlyTheVeryProcess) {
  const auto self = identify_process(::getpid());
  ASSERT_TRUE(self.has_value());
  EXPECT_TRUE(is_alive(*self));
  EXPECT_EQ(parent_of(::getpid()), ::getppid());
  EXPECT_FALSE(identify_process(0).has_value());
  EXPECT_FALSE(identify_process(-1).has_value());

  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const auto identity = identify_process(child);
  ASSERT_TRUE(identity.has_value());
  EXPECT_FALSE(wait_until_gone(*identity, milliseconds(1)));
  ProcessIdentity stranger = *identity;
  ++stranger.start_time_ticks;
  EXPECT_TRUE(end_process(stranger, milliseconds(1)));
  EXPECT_TRUE(is_alive(*identity)) << "it was not the one that was meant";
  EXPECT_TRUE(end_process(*identity, milliseconds(5000)));
  EXPECT_TRUE(eventually([&] { return !identify_process(child); })) << "a zombie is dead";
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace cotenant::adapters
