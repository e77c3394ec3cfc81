#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

namespace shim {
namespace {

// In the child: tells the parent, and ends.
[[noreturn]] void give_up(int report, const char* doing, const char* what) {
  char text[512];
  const int size = snprintf(text, sizeof text, "%s%s%s%s: %s", doing, *what ? " '" : "", what,
                            *what ? "'" : "", strerror(errno));
  if (size > 0) {
    const size_t length =
        static_cast<size_t>(size) < sizeof text ? static_cast<size_t>(size) : sizeof text - 1;
    if (write(report, text, length) < 0) _exit(126);
  }
  _exit(127);
}

void change_user(const Options& options, int report) {
  if (!options.change_user) return;
  if (setgroups(static_cast<size_t>(options.group_count), options.groups) != 0) {
    give_up(report, "user: cannot set its groups", "");
  }
  if (setgid(options.gid) != 0) give_up(report, "user: cannot set its group", "");
  if (setuid(options.uid) != 0) give_up(report, "user: cannot become it", "");
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// parent: whose end is to be the program's.
[[noreturn]] void become(const Options& options, int report, pid_t parent) {
  for (int i = 0; i < options.limit_count; ++i) {
    if (setrlimit(static_cast<__rlimit_resource_t>(options.limits[i].resource),
                  &options.limits[i].value) != 0) {
      give_up(report, "ulimits", "");
    }
  }
  change_user(options, report);
  // After the change of user, which would undo it. The program does not outlive its parent, shim or
  // agent: nobody would know of it any more.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  if (chdir(options.working_directory) != 0) {
    give_up(report, "workingDirectory", options.working_directory);
  }
  umask(022);
  reset_signals();
  execvp(options.program[0], options.program);
  give_up(report, "program", options.program[0]);
}

[[noreturn]] void become_child(const Options& options, int input, int output, int error, int report,
                               pid_t shim) {
  setsid();
  if (dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(error, 2) < 0) {
    give_up(report, "standard streams", "");
  }
  become(options, report, shim);
}

}  // namespace

void become_program(const Options& options, int report) {
  if (options.has_terminal && ioctl(0, TIOCSCTTY, 0) != 0) give_up(report, "terminal", "");
  become(options, report, options.parent);
}

void start_program(const Options& options, Started* started) {
  int input[2] = {-1, -1};
  int output[2];
  int error[2];
  int report[2];
  if (options.keep_stdin ? pipe2(input, O_CLOEXEC) != 0
                         : (input[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) {
    snprintf(started->error, sizeof started->error, "standard input: %s", strerror(errno));
    return;
  }
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(error, O_CLOEXEC) != 0 ||
      pipe2(report, O_CLOEXEC) != 0) {
    snprintf(started->error, sizeof started->error, "pipe: %s", strerror(errno));
    return;
  }
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) become_child(options, input[0], output[1], error[1], report[1], self);
  for (const int end : {input[0], output[1], error[1], report[1]}) close(end);
  if (child < 0) {
    snprintf(started->error, sizeof started->error, "fork: %s", strerror(errno));
    return;
  }
  // Its end is closed by exec, or with the child.
  size_t size = 0;
  while (size + 1 < sizeof started->error) {
    const ssize_t count = read(report[0], started->error + size, sizeof started->error - 1 - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  started->error[size] = '\0';
  close(report[0]);
  if (size > 0) {
    waitpid(child, nullptr, 0);
    return;
  }
  started->pid = child;
  started->input = input[1];
  started->output[0] = output[0];
  started->output[1] = error[0];
  for (const int end : started->output) fcntl(end, F_SETFL, O_NONBLOCK);
}

}  // namespace shim
