#include "cli/pid_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace cotenant::cli {
namespace {

using base::identify_process;
using std::chrono::milliseconds;

// A child that waits for a signal, with this name in /proc/<pid>/stat.
class Child {
 public:
  explicit Child(bool ignores_sigterm = false, const char* name = "child") {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      if (ignores_sigterm) ::signal(SIGTERM, SIG_IGN);
      ::prctl(PR_SET_NAME, name);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      [[maybe_unused]] const ssize_t written = ::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Ended, but still there as a zombie.
  void make_zombie() {
    ::kill(pid_, SIGKILL);
    siginfo_t info{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }
  int reap() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
};

class PidFileTest : public testing::Test {
 protected:
  PidFileTest() {
    char path[] = "/tmp/cotenant-pid-XXXXXX";
    folder_ = ::mkdtemp(path);
    file_ = folder_ + "/up.pid";
  }
  ~PidFileTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(file_, std::ios::trunc) << text; }

  std::string folder_;
  std::string file_;
};

TEST_F(PidFileTest, AProcessIsItsPidAndItsStart) {
  const auto self = identify_process(::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->pid, ::getpid());
  EXPECT_GT(self->start_time_ticks, 0U);
  EXPECT_EQ(self, identify_process(::getpid()));
}

TEST_F(PidFileTest, NamesWithBlanksAndBracketsDoNotConfuse) {
  const Child plain;
  const Child odd(false, ") R 1 (x y");
  const auto identity = identify_process(odd.pid());
  ASSERT_TRUE(identity);
  EXPECT_GE(identity->start_time_ticks, identify_process(plain.pid())->start_time_ticks);
}

TEST_F(PidFileTest, WhatIsNotThereIsNothing) {
  Child child;
  const pid_t pid = child.pid();
  child.make_zombie();
  EXPECT_FALSE(identify_process(pid)) << "a zombie runs nothing";
  child.reap();
  EXPECT_FALSE(identify_process(pid));
  EXPECT_FALSE(identify_process(0));
  EXPECT_FALSE(identify_process(-1));
}

TEST_F(PidFileTest, AFileNamesTheProcessAsLongAsItLives) {
  Child child;
  ASSERT_TRUE(write_pid_file(file_, child.pid()));
  EXPECT_EQ(read_pid_file(file_), identify_process(child.pid()));
  child.make_zombie();
  EXPECT_FALSE(read_pid_file(file_));
}

TEST_F(PidFileTest, AnotherProcessWithTheSamePidIsNotTheOne) {
  const Child child;
  const auto identity = identify_process(child.pid());
  ASSERT_TRUE(identity);
  const auto& [pid, start, boot, command] = *identity;
  write(fmt::format("{} {} {}\n", pid, start, boot));
  EXPECT_TRUE(read_pid_file(file_));
  write(fmt::format("{} {} {}\n", pid, start + 1, boot));
  EXPECT_FALSE(read_pid_file(file_));
  write(fmt::format("{} {} another-boot\n", pid, start));
  EXPECT_FALSE(read_pid_file(file_)) << "pids and ticks begin anew with each boot";
}

TEST_F(PidFileTest, FilesThatSayNothing) {
  EXPECT_FALSE(read_pid_file(file_)) << "no file";
  for (const char* text : {"", "\n", "x", "1", "0 0 b", "-1 1 b", "99999999999999999999 1 b"}) {
    write(text);
    EXPECT_FALSE(read_pid_file(file_)) << text;
  }
}

TEST_F(PidFileTest, AFileThatCannotBeWrittenIsAnError) {
  const auto status = write_pid_file(folder_ + "/nowhere/up.pid", ::getpid());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, base::ErrorCode::kIo);
  EXPECT_FALSE(write_pid_file(file_, -1)) << "no such process";
}

// The child stays a zombie until it is reaped: that counts as gone.
TEST_F(PidFileTest, AProcessIsAskedToEndAndThenMade) {
  Child willing;
  EXPECT_TRUE(end_recorded_process(*identify_process(willing.pid()), "it", milliseconds(20000)));
  int status = willing.reap();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);

  Child unwilling(true);
  EXPECT_TRUE(end_recorded_process(*identify_process(unwilling.pid()), "it", milliseconds(40)));
  status = unwilling.reap();
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST_F(PidFileTest, OnlyTheVeryProcessIsSignalled) {
  Child child;
  base::ProcessIdentity other = *identify_process(child.pid());
  ++other.start_time_ticks;
  EXPECT_TRUE(end_recorded_process(other, "it", milliseconds(0))) << "that one has gone long ago";
  EXPECT_TRUE(identify_process(child.pid())) << "and this one was left alone";
}

}  // namespace
}  // namespace cotenant::cli
